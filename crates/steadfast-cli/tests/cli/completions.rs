//! Completion scripts know every subcommand.

use crate::support::steadfast;

#[test]
fn every_shell_learns_every_subcommand() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = steadfast(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
        for word in
            ["call", "check", "test", "schema", "init", "demo", "completions", "force", "idempotency-key", "cacert"]
        {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
    }
}
