//! Parameters and columns on their way to and from PostgreSQL.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::db::{Cell, Row, Value};

/// A parameter that outlives the call that brought it.
#[derive(Debug)]
pub(super) enum Owned {
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
    Null,
}

impl From<&Value<'_>> for Owned {
    fn from(value: &Value<'_>) -> Self {
        match value {
            Value::Int(number) => Self::Int(*number),
            Value::Text(text) => Self::Text((*text).to_owned()),
            Value::Blob(blob) => Self::Blob((*blob).to_owned()),
            Value::NullInt | Value::NullText | Value::NullBlob => Self::Null,
        }
    }
}

impl ToSql for Owned {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Int(number) => number.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Blob(blob) => blob.to_sql(ty, out),
            Self::Null => Ok(IsNull::Yes),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

/// The type of each parameter. PostgreSQL cannot always tell it from the statement.
pub(super) fn types(values: &[Value<'_>]) -> Vec<Type> {
    let of = |value: &Value<'_>| match value {
        Value::Int(_) | Value::NullInt => Type::INT8,
        Value::Text(_) | Value::NullText => Type::TEXT,
        Value::Blob(_) | Value::NullBlob => Type::BYTEA,
    };
    values.iter().map(of).collect()
}

impl Row for tokio_postgres::Row {
    fn width(&self) -> usize {
        self.len()
    }

    fn cell(&self, index: usize) -> Result<Cell<'_>, String> {
        let column = self.columns().get(index).ok_or_else(|| format!("there is no column {}", index + 1))?;
        let cell = if *column.type_() == Type::INT8 {
            self.try_get::<_, Option<i64>>(index).map(|cell| cell.map(Cell::Int))
        } else if *column.type_() == Type::TEXT {
            self.try_get::<_, Option<&str>>(index).map(|cell| cell.map(Cell::Text))
        } else if *column.type_() == Type::BYTEA {
            self.try_get::<_, Option<&[u8]>>(index).map(|cell| cell.map(Cell::Blob))
        } else {
            return Err(format!("column {} is of a type that we do not use", index + 1));
        };
        match cell {
            Ok(cell) => Ok(cell.unwrap_or(Cell::Null)),
            Err(_source) => Err(format!("column {} cannot be read", index + 1)),
        }
    }
}
