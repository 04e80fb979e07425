//! Signing in, renewing and signing out against an issuer on this machine that answers what a test says.
