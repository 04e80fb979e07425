//! Pages for tests and measurements.

use std::fmt::Write;

/// Returns a page like that of a shop: a table of orders with links, boxes and buttons within meaningless boxes, three
/// frames and twenty shadow trees. 137 orders result in five thousand nodes of the accessibility tree.
pub fn page_of_orders(orders: usize) -> String {
    let mut page = "<!doctype html><meta charset=utf-8><title>Orders</title><header><nav><ul>".to_owned();
    for name in ["Dashboard", "Orders", "Customers", "Products", "Reports", "Settings"] {
        let _ = write!(page, "<li><a href='/{name}'><span><span>{name}</span></span></a></li>");
    }
    page.push_str(
        "</ul></nav></header><main><h1>Orders</h1><form><label>Search <input type=search></label> \
         <button type=button>Filter</button></form><p id=done role=status></p><div><div><div>\
         <table aria-label=Orders><thead><tr><th><input type=checkbox aria-label=All><th>Order<th>Customer<th>Status\
         <th>Total<th>Actions</tr></thead><tbody>",
    );
    for order in 1..=orders {
        let (number, status) = (1_000 + order, ["open", "paid", "sent"][order % 3]);
        let _ = write!(
            page,
            "<tr><td><div><input type=checkbox aria-label='Order {number}'></div></td>\
             <td><div><a href='/orders/{number}?from=list&amp;sort=date'>#{number}</a></div></td>\
             <td><div><div><span>Customer {order}</span> <small>customer{order}@shop.example</small></div></div></td>\
             <td><div><span>{status}</span></div></td><td><div>{}.{:02} EUR</div></td>\
             <td><div><div><button onclick=\"this.textContent = 'Sent'; done.textContent = 'Order {number} is sent'\">\
             Send</button><button disabled>Refund</button></div></div></td></tr>",
            order * 13 % 997,
            order % 100,
        );
    }
    page.push_str("</tbody></table></div></div></div>");
    for frame in 1..=3 {
        let _ = write!(
            page,
            "<iframe title='Chat {frame}' srcdoc='<label>Message <input></label><button>Write {frame}</button>\
             <p>Hello, how can we help?</p>'></iframe>"
        );
    }
    page.push_str(&"<div class=note></div>".repeat(20));
    page.push_str(
        "</main><script>window.done = document.getElementById('done');\
         document.querySelectorAll('.note').forEach((note, place) => {\
         note.attachShadow({mode: 'closed'}).innerHTML = `<div><button>Close note ${place + 1}</button></div>`;\
         });</script>",
    );
    page
}

/// Returns a page of this number of meaningless boxes, nested 99 deep, with a button in every tenth innermost box.
pub fn page_of_boxes(boxes: usize) -> String {
    format!(
        "<!doctype html><title>Boxes</title><body><script>let page = '';\
         for (let at = 0; at < {}; at++) page += '<div>'.repeat(99) + (at % 10 ? '' : `<button>Button ${{at}}</button>`) \
         + '</div>'.repeat(99);\
         document.body.innerHTML = page;</script>",
        boxes / 99
    )
}
