//! Why a Work that has input does not start, and what will change that.
//!
//! Capacity is counted from the rows of live attempts in the transaction that would add one, so there is no
//! counter to leak. A Work that finds no room moves to the list of what it waits for, and comes back when
//! room appears there; nothing walks past it meanwhile.

use std::fmt;

use crate::text::{ConcurrencyKey, CredentialName, ScopeName, TextError};

/// What a refused Work waits for. Its text is the name of the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocker {
    /// The scope runs as many attempts as its `concurrency` allows.
    ScopeFull(ScopeName),
    /// Another Work of the scope runs, or may still run, under the same concurrency key.
    Concurrency(ScopeName, ConcurrencyKey),
    /// The scope is disabled.
    ScopeDisabled(ScopeName),
    /// The scope is paused, or one that it descends from is; see [`crate::pause`].
    ScopePaused(ScopeName),
    /// The scope or the binding is not in the configuration in force; the next apply may bring it back.
    Unconfigured(ScopeName),
    /// It waits out a failed attempt; see [`crate::retry`].
    Backoff(ScopeName),
    /// It failed too often in a row, and an operator decides.
    Exhausted(ScopeName),
    /// It is held, with a reason of its own, until an operator releases it.
    Held(ScopeName),
    /// What its interrupted attempt had started has yet to stop.
    Stopping(ScopeName),
    /// A start gate is asked about its first attempt.
    Asked(ScopeName),
    /// What turns of the scope that run have reserved leaves nothing of a budget now.
    Reserved(ScopeName),
    /// The same of a budget over all scopes.
    ReservedOverall,
    /// The credential of its binding has met its usage limit; see [`crate::credential`].
    Credential(CredentialName),
}

/// The list of those that wait for a budget over all scopes. No scope's name is like that.
const RESERVED_OVERALL: &str = "reserved:*";

impl Blocker {
    /// Whether a configuration that is put in force may remove it. It may also move a scope out from under a pause.
    pub const fn is_of_configuration(&self) -> bool {
        match self {
            // Nothing of a configuration keeps a concurrency key; whoever had it may be gone all the same.
            Self::ScopeFull(_)
            | Self::Concurrency(..)
            | Self::ScopeDisabled(_)
            | Self::ScopePaused(_)
            | Self::Unconfigured(_)
            | Self::Reserved(_)
            | Self::ReservedOverall
            | Self::Credential(_) => true,
            Self::Backoff(_) | Self::Exhausted(_) | Self::Held(_) | Self::Stopping(_) | Self::Asked(_) => {
                false
            }
        }
    }

    /// How many of those who wait for it come back when a configuration is put in force: as many as may find room.
    /// `concurrency` is what each scope allows now, none where it is gone.
    pub fn comes_back(
        &self,
        concurrency: impl FnOnce(&ScopeName) -> Option<u32>,
        is_paused: impl FnOnce(&ScopeName) -> bool,
    ) -> u32 {
        match self {
            // A scope that is gone is said by another list.
            Self::ScopeFull(scope) => concurrency(scope).unwrap_or(u32::MAX),
            // They stay while their scope is paused, so that an apply walks no long list for nothing.
            Self::ScopePaused(scope) if is_paused(scope) => 0,
            // One at a time.
            Self::Concurrency(..) => 1,
            // They all come back.
            Self::ScopePaused(_)
            | Self::ScopeDisabled(_)
            | Self::Unconfigured(_)
            | Self::Reserved(_)
            | Self::ReservedOverall
            | Self::Credential(_) => u32::MAX,
            // No configuration brings them back.
            Self::Backoff(_) | Self::Exhausted(_) | Self::Held(_) | Self::Stopping(_) | Self::Asked(_) => 0,
        }
    }

    /// Reads a stored text.
    ///
    /// # Errors
    /// [`TextError`] when it is not one of ours.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text == RESERVED_OVERALL {
            return Ok(Self::ReservedOverall);
        }
        let unknown = TextError::Form { what: "a blocker", form: "a reason word, a colon and a scope" };
        let (word, scope) = text.split_once(':').ok_or(unknown.clone())?;
        if word == "concurrency" {
            let (scope, key) = scope.split_once(':').ok_or(unknown)?;
            return Ok(Self::Concurrency(ScopeName::new(scope)?, ConcurrencyKey::new(key)?));
        }
        if word == "credential" {
            return CredentialName::new(scope).map(Self::Credential);
        }
        let scope = ScopeName::new(scope)?;
        match word {
            "scope_full" => Ok(Self::ScopeFull(scope)),
            "scope_disabled" => Ok(Self::ScopeDisabled(scope)),
            "scope_paused" => Ok(Self::ScopePaused(scope)),
            "unconfigured" => Ok(Self::Unconfigured(scope)),
            "backoff" => Ok(Self::Backoff(scope)),
            "exhausted" => Ok(Self::Exhausted(scope)),
            "held" => Ok(Self::Held(scope)),
            "stopping" => Ok(Self::Stopping(scope)),
            "asked" => Ok(Self::Asked(scope)),
            "reserved" => Ok(Self::Reserved(scope)),
            _ => Err(unknown),
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScopeFull(scope) => write!(f, "scope_full:{scope}"),
            Self::Concurrency(scope, key) => write!(f, "concurrency:{scope}:{key}"),
            Self::ScopeDisabled(scope) => write!(f, "scope_disabled:{scope}"),
            Self::ScopePaused(scope) => write!(f, "scope_paused:{scope}"),
            Self::Unconfigured(scope) => write!(f, "unconfigured:{scope}"),
            Self::Backoff(scope) => write!(f, "backoff:{scope}"),
            Self::Exhausted(scope) => write!(f, "exhausted:{scope}"),
            Self::Held(scope) => write!(f, "held:{scope}"),
            Self::Stopping(scope) => write!(f, "stopping:{scope}"),
            Self::Asked(scope) => write!(f, "asked:{scope}"),
            Self::Reserved(scope) => write!(f, "reserved:{scope}"),
            Self::ReservedOverall => f.write_str(RESERVED_OVERALL),
            Self::Credential(credential) => write!(f, "credential:{credential}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Blocker;
    use crate::text::{ConcurrencyKey, CredentialName, ScopeName};

    #[test]
    fn text_round_trips() {
        let scope = ScopeName::known("team/eng");
        for blocker in [
            Blocker::ScopeFull(scope.clone()),
            Blocker::Concurrency(scope.clone(), ConcurrencyKey::known("deploy: the “site”")),
            Blocker::ScopeDisabled(scope.clone()),
            Blocker::ScopePaused(scope.clone()),
            Blocker::Unconfigured(scope.clone()),
            Blocker::Backoff(scope.clone()),
            Blocker::Exhausted(scope.clone()),
            Blocker::Held(scope.clone()),
            Blocker::Stopping(scope.clone()),
            Blocker::Asked(scope.clone()),
            Blocker::Reserved(scope),
            Blocker::ReservedOverall,
            Blocker::Credential(CredentialName::known("claude/team")),
        ] {
            assert_eq!(Blocker::parse(&blocker.to_string()).unwrap(), blocker);
        }
        assert!(Blocker::parse("credential:Not A Name").is_err());
        assert!(Blocker::parse("moon:main").is_err());
        assert!(Blocker::parse("scope_full").is_err());
    }

    #[test]
    fn as_many_come_back_as_a_configuration_may_have_room_for() {
        let (scope, gone) = (ScopeName::known("main"), ScopeName::known("gone"));
        let comes = |blocker: &Blocker| {
            blocker.comes_back(|name| (*name == scope).then_some(3), |name| *name == scope)
        };
        assert_eq!(
            [comes(&Blocker::ScopeFull(scope.clone())), comes(&Blocker::ScopeFull(gone.clone()))],
            [3, u32::MAX]
        );
        assert_eq!(
            [comes(&Blocker::ScopePaused(scope.clone())), comes(&Blocker::ScopePaused(gone))],
            [0, u32::MAX]
        );
        let key = ConcurrencyKey::known("deploy");
        assert_eq!(comes(&Blocker::Concurrency(scope.clone(), key)), 1);
        let all = [
            Blocker::ScopeDisabled(scope.clone()),
            Blocker::Unconfigured(scope.clone()),
            Blocker::Reserved(scope.clone()),
            Blocker::ReservedOverall,
            Blocker::Credential(CredentialName::known("claude")),
        ];
        assert!(all.iter().all(|blocker| comes(blocker) == u32::MAX && blocker.is_of_configuration()));
        let none = [
            Blocker::Backoff(scope.clone()),
            Blocker::Exhausted(scope.clone()),
            Blocker::Held(scope.clone()),
            Blocker::Stopping(scope.clone()),
            Blocker::Asked(scope.clone()),
        ];
        assert!(none.iter().all(|blocker| comes(blocker) == 0 && !blocker.is_of_configuration()));
    }
}
