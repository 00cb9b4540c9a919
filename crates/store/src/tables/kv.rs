//! Small records by namespace and key.

use domain::store::{KvReads, KvRow, KvWrites, StoreError};

use crate::db::{Columns, Sql, blob, limit, text, time};
use crate::tx::Transaction;

static READ: Sql =
    Sql::new("read a record", "kv", "SELECT key, body, at FROM kv WHERE namespace = $1 AND key = $2");
static LIST: Sql = Sql::new(
    "list records",
    "kv",
    "SELECT key, body, at FROM kv WHERE namespace = $1 AND key > $2 ORDER BY key LIMIT $3",
);
static PUT: Sql = Sql::new(
    "write a record",
    "kv",
    "INSERT INTO kv (namespace, key, body, at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (namespace, key) DO UPDATE SET body = excluded.body, at = excluded.at",
);
static DELETE: Sql = Sql::new("remove a record", "kv", "DELETE FROM kv WHERE namespace = $1 AND key = $2");

fn decode(columns: &mut Columns<'_>) -> Result<KvRow, StoreError> {
    Ok(KvRow { key: columns.text()?, body: columns.blob()?.to_vec(), at: columns.time()? })
}

impl KvReads for Transaction<'_> {
    fn kv(&mut self, namespace: &str, key: &str) -> Result<Option<KvRow>, StoreError> {
        self.db.one(&READ, &[text(namespace), text(key)], decode)
    }

    fn kv_after(&mut self, namespace: &str, after: &str, rows: u32) -> Result<Vec<KvRow>, StoreError> {
        self.db.many(&LIST, &[text(namespace), text(after), limit(rows)], decode)
    }
}

impl KvWrites for Transaction<'_> {
    fn put_kv(&mut self, namespace: &str, row: &KvRow) -> Result<(), StoreError> {
        self.db.write(&PUT, &[text(namespace), text(&row.key), blob(&row.body), time(row.at)], 1)
    }

    fn delete_kv(&mut self, namespace: &str, key: &str) -> Result<bool, StoreError> {
        Ok(self.db.count(&DELETE, &[text(namespace), text(key)])? > 0)
    }
}
