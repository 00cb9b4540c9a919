//! Lists that people ask for: a query whose conditions are those that the filter names.

use crate::db::{Value, limit};

/// A query in the making.
#[derive(Debug)]
pub(crate) struct List<'v> {
    text: String,
    values: Vec<Value<'v>>,
}

impl<'v> List<'v> {
    /// Begins with everything up to `WHERE`.
    pub(crate) fn new(select: &str) -> Self {
        Self { text: format!("{select} WHERE 1 = 1"), values: Vec::new() }
    }

    /// Adds a condition when there is a value for it. `condition` has `$n` where the value goes.
    pub(crate) fn only(&mut self, condition: &str, value: Option<Value<'v>>) {
        let Some(value) = value else { return };
        self.values.push(value);
        let parameter = format!("${}", self.values.len());
        self.text.push_str(" AND ");
        self.text.push_str(&condition.replace("$n", &parameter));
    }

    /// Adds a condition without a value, when it is asked for.
    pub(crate) fn fixed(&mut self, condition: Option<&str>) {
        let Some(condition) = condition else { return };
        self.text.push_str(" AND ");
        self.text.push_str(condition);
    }

    /// Adds a condition with two values, `$m` and `$n`.
    pub(crate) fn only_pair(&mut self, condition: &str, values: Option<(Value<'v>, Value<'v>)>) {
        let Some((first, second)) = values else { return };
        self.values.push(first);
        let parameter = format!("${}", self.values.len());
        self.only(&condition.replace("$m", &parameter), Some(second));
    }

    /// Ends with the order and the most rows.
    pub(crate) fn ordered(mut self, order: &str, rows: u32) -> (String, Vec<Value<'v>>) {
        self.values.push(limit(rows));
        let end = format!(" ORDER BY {order} LIMIT ${}", self.values.len());
        self.text.push_str(&end);
        (self.text, self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::List;
    use crate::db::{int, text};

    #[test]
    fn a_list_has_the_conditions_that_have_values() {
        let mut list = List::new("SELECT a FROM t");
        list.only("b = $n", Some(int(1)));
        list.only("c = $n", None);
        list.only_pair("(d, e) = ($m, $n)", Some((text("x"), text("y"))));
        list.fixed(Some("f > 4"));
        list.fixed(None);
        let (query, values) = list.ordered("a", 5);
        assert_eq!(
            query,
            "SELECT a FROM t WHERE 1 = 1 AND b = $1 AND (d, e) = ($2, $3) AND f > 4 ORDER BY a LIMIT $4"
        );
        assert_eq!(values, [int(1), text("x"), text("y"), int(5)]);
    }
}
