//! A configuration as it is declared, and what it resolves to.
