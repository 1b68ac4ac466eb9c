//! Chats: a message for people in a room.

pub(crate) mod discord;
pub(crate) mod googlechat;
pub(crate) mod lark;
pub(crate) mod matrix;
pub(crate) mod msteams;
pub(crate) mod rocket;
pub(crate) mod slack;
pub(crate) mod telegram;
pub(crate) mod webex;
pub(crate) mod zoom;
pub(crate) mod zulip;
