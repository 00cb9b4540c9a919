//! Tests of the migrations.
