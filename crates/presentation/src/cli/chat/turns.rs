//! Turns of a conversation, for undoing them.

use toolstead_domain::{ConversationEvent, ConversationEventKind};

/// Returns the beginning of each turn that was not undone, oldest first: the number of the event before it.
pub(super) fn beginnings(events: &[ConversationEvent]) -> Vec<u64> {
    let mut begun: Vec<u64> = Vec::new();
    // `true` if the previous turn has ended or there is none.
    let mut is_between = true;
    for event in events {
        match &event.kind {
            ConversationEventKind::UserSaid { .. } if is_between => {
                begun.push(event.number.saturating_sub(1));
                is_between = false;
            }
            ConversationEventKind::TurnEnded { .. } => is_between = true,
            ConversationEventKind::TakenBack { to } => {
                begun.retain(|before| before < to);
                is_between = true;
            }
            _ => {}
        }
    }
    begun
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Block, Timestamp};

    #[track_caller]
    fn check(answer: &str, expected: &[u64]) {
        let kind = |letter| match letter {
            'u' => ConversationEventKind::UserSaid { blocks: vec![Block::text("x")] },
            'e' => ConversationEventKind::TurnEnded { outcome: "finished".into(), message: None },
            'm' => ConversationEventKind::Masked { events: Vec::new() },
            to => ConversationEventKind::TakenBack { to: u64::from(to.to_digit(10).unwrap()) },
        };
        let events: Vec<ConversationEvent> = answer
            .chars()
            .zip(1..)
            .map(|(letter, number)| ConversationEvent { number, at: Timestamp(0), kind: kind(letter) })
            .collect();
        assert_eq!(beginnings(&events), expected, "{answer}");
    }

    #[test]
    fn a_turn_begins_with_the_first_user_message_after_the_previous_turn() {
        check("", &[]);
        check("ue", &[0]);
        check("umume", &[0]);
        check("ueueue", &[0, 2, 4]);
        // A turn that was interrupted by a crash continues.
        check("ueumu", &[0, 2]);
    }

    #[test]
    fn undone_turns_are_not_counted() {
        check("ueue2", &[0]);
        check("ueue2ue", &[0, 5]);
        check("ueue0", &[]);
        check("ueue2ue0ue", &[8]);
    }
}
