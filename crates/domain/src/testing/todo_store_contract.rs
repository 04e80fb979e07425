//! Contract of every store of plans.

use crate::{
    ports::todo_store::TodoStore,
    principal::Principal,
    todo::{Todo, TodoList, TodoPriority, TodoStatus},
};

/// Returns a plan with one step of each status.
pub fn plan() -> TodoList {
    let one = |(id, status): (usize, TodoStatus)| Todo {
        id: id.to_string(),
        content: format!("thing \u{e4} {id}\n\"quoted\""),
        active_form: (id == 2).then(|| "doing it".to_owned()),
        status,
        priority: TodoPriority::High,
    };
    use TodoStatus::{Canceled, Completed, InProgress, Pending};
    TodoList((1..).zip([Pending, InProgress, Completed, Canceled]).map(one).collect())
}

/// Checks each guarantee of [`TodoStore`], except its limits, on an empty store.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn todo_store_contract(todos: &dyn TodoStore) {
    let (me, other) = (Principal::local(), Principal::token("t"));
    assert_eq!(todos.todos(&me, "s").await.unwrap(), TodoList::default(), "there is no plan at first");
    assert_eq!(todos.replace(&me, "s", plan()).await.unwrap(), TodoList::default(), "nothing was there before");
    assert_eq!(todos.todos(&me, "s").await.unwrap(), plan(), "a plan is kept as it was written");

    assert_eq!(todos.todos(&me, "t").await.unwrap(), TodoList::default(), "another session has none");
    assert_eq!(todos.todos(&other, "s").await.unwrap(), TodoList::default(), "nor has somebody else");
    let shorter = TodoList(plan().0.split_off(3));
    assert_eq!(todos.replace(&other, "s", shorter.clone()).await.unwrap(), TodoList::default());
    assert_eq!(todos.todos(&me, "s").await.unwrap(), plan(), "what somebody else plans changes nothing here");

    assert_eq!(todos.replace(&me, "s", shorter.clone()).await.unwrap(), plan(), "the one before comes back");
    assert_eq!(todos.todos(&me, "s").await.unwrap(), shorter, "the last one counts");
    assert_eq!(todos.replace(&me, "s", TodoList::default()).await.unwrap(), shorter);
    assert_eq!(todos.todos(&me, "s").await.unwrap(), TodoList::default(), "an empty plan is none");
}
