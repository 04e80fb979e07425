use toolstead_presentation::prelude::*;

#[derive(Deserialize, JsonSchema)]
pub struct Place {
    /// The city, such as "Bern".
    city: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Weather {
    degrees_celsius: f64,
}

pub struct Forecast;
impl TypedTool for Forecast {
    const NAME: &str = "forecast";
    const DESCRIPTION: &str = "Returns tomorrow's weather in a city. Use it to plan a day.";
    const TOUCHES: DeclaredAccesses = DeclaredAccesses::NoAccess;
    type Input = Place;
    type Output = Weather;
    async fn run(&self, place: Place, _: &ToolContext<'_>) -> Result<Weather, ToolFailure> {
        Ok(Weather { degrees_celsius: if place.city == "Bern" { 21.5 } else { 9.0 } })
    }
}
