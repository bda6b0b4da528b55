//! Limits for opened files: `--max-password-cost` and `--max-recipients`.

use apr_crypto::Argon2Limits;
use apr_sealed::SealedLimits;

use crate::args::parse_size;

/// The most that a password may cost: memory, and passes over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PasswordCost {
    memory_kib: u32,
    passes: u32,
}

impl PasswordCost {
    /// Limits for sealed files unless the command line sets others. Such files are untrusted, and what they ask for is spent
    /// before anything of the file is known to be authentic.
    const OF_FILES: Self = Self { memory_kib: 256 << 10, passes: 8 };
    /// Less is no protection.
    const LEAST_KIB: u32 = 8 << 10;

    fn limits(self) -> Argon2Limits {
        Argon2Limits::default()
            .with_memory_kib(Self::LEAST_KIB..=self.memory_kib)
            .with_passes(1..=self.passes)
            .with_work_kib(u64::from(self.memory_kib) * u64::from(self.passes))
    }
}

/// Reads `256MiB:8`.
pub(super) fn parse_cost(text: &str) -> Result<PasswordCost, String> {
    let wrong = || "write memory and passes as 256MiB:8".to_owned();
    let (memory, passes) = text.split_once(':').ok_or_else(wrong)?;
    let memory = parse_size(memory).map_err(|_| wrong())?;
    let passes = passes.parse().ok().filter(|passes| *passes > 0).ok_or_else(wrong)?;
    let memory_kib = u32::try_from(memory >> 10).map_err(|_| "4 TiB of memory and more are not to be had")?;
    match memory_kib >= PasswordCost::LEAST_KIB {
        true => Ok(PasswordCost { memory_kib, passes }),
        false => Err("below 8 MiB of memory no password is accepted".to_owned()),
    }
}

/// What files that are opened may ask for, as far as the command line says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    cost: Option<PasswordCost>,
    recipients: Option<usize>,
}

impl Limits {
    pub(super) fn new(cost: Option<PasswordCost>, recipients: Option<u16>) -> Self {
        Self { cost, recipients: recipients.map(Into::into) }
    }

    /// Every cost that Argon2id can have and is some protection.
    pub(crate) fn widest() -> Argon2Limits {
        let all = PasswordCost { memory_kib: u32::MAX, passes: u32::MAX };
        all.limits().with_lanes(1..=u32::MAX)
    }

    /// Of a key file: its owner's alone, or it is refused. What minisign writes takes all that is allowed by default.
    pub(crate) fn of_keys(self) -> Argon2Limits {
        self.cost.map_or_else(Argon2Limits::default, PasswordCost::limits)
    }

    pub(crate) fn of_sealed(self) -> SealedLimits {
        let default = SealedLimits::default();
        SealedLimits {
            argon2: self.cost.unwrap_or(PasswordCost::OF_FILES).limits(),
            stanzas: self.recipients.unwrap_or(default.stanzas),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use apr_crypto::Argon2Cost;

    use super::*;

    #[test]
    fn costs_are_memory_and_passes() {
        assert_eq!(parse_cost("256MiB:8"), Ok(PasswordCost::OF_FILES));
        assert_eq!(parse_cost("1GiB:4"), Ok(PasswordCost { memory_kib: 1 << 20, passes: 4 }));
        for wrong in ["", "1GiB", "1GiB:", ":4", "1GiB:0", "1GiB:-1", "7MiB:1", "4TiB:1", "1GiB:4:1", "x:1"] {
            assert!(parse_cost(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_this_program_writes_is_within_its_own_limit() {
        let limits = Limits::default().of_sealed();
        for cost in [Argon2Cost::RFC_9106, Argon2Cost::APR_V1] {
            assert_eq!(Argon2Cost::from_bytes(&cost.to_bytes(), &limits.argon2).unwrap(), cost);
        }
        let refused = |memory_kib, passes| {
            Argon2Cost::new(memory_kib, passes, 1, &limits.argon2).unwrap_err().code() == "cy-cost"
        };
        assert!(Argon2Cost::new(256 << 10, 8, 4, &limits.argon2).is_ok());
        assert!(refused((256 << 10) + 1, 1) && refused(8 << 10, 9));
    }
}
