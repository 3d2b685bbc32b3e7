//! The program of the demo: a list of all employees, then the salaries of each. It is a client like any other. It
//! knows a driver and SQL, and nothing of the gateway between it and its database.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use super::data::Paid;

/// A way to get at the same salaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// One statement for each employee.
    AsIs,
    /// One statement for all employees of the list.
    Any,
    /// No list: one statement that joins both tables.
    Join,
    /// One prepared statement for each employee, in a transaction that sees one state, through a gateway that removes trips.
    Exact,
}

/// Where the tables are.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    /// What stands before a table's name: nothing, or a schema and a dot.
    pub(super) prefix: String,
}

impl Tables {
    /// Asks for the salaries of the first so many employees; `asked` is told after every statement.
    ///
    /// Every statement is one trip: its parameters' types are said, so that the driver need not ask for them.
    pub(super) async fn salaries(
        &self,
        client: &Client,
        way: Way,
        employees: usize,
        asked: impl Fn(),
    ) -> Result<Vec<Paid>, Error> {
        match way {
            Way::AsIs => self.one_by_one(client, employees, asked).await,
            Way::Any => self.with_any(client, employees, asked).await,
            Way::Join => self.with_join(client, asked).await,
            Way::Exact => {
                client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
                let found = self.one_by_one_prepared(client, employees, asked).await?;
                client.batch_execute("COMMIT").await?;
                Ok(found)
            }
        }
    }

    /// The loop with a prepared statement: what runs it says nothing but its values.
    async fn one_by_one_prepared(
        &self,
        client: &Client,
        employees: usize,
        asked: impl Fn(),
    ) -> Result<Vec<Paid>, Error> {
        let list = client.prepare(&self.list()).await?;
        let list = client.query(&list, &[]).await?;
        asked();
        let statement = client.prepare_typed(&self.salaries_of_one(), &[Type::INT4]).await?;
        let mut found = Vec::new();
        for row in list.iter().take(employees) {
            let employee: i32 = row.try_get(0)?;
            found.extend(paid(&client.query(&statement, &[&employee]).await?)?);
            asked();
        }
        Ok(found)
    }

    fn salaries_of_one(&self) -> String {
        format!(
            "SELECT emp_no, salary, from_date, to_date FROM {}salaries WHERE emp_no = $1 ORDER BY from_date",
            self.prefix
        )
    }

    fn list(&self) -> String {
        format!("SELECT emp_no, first_name, last_name FROM {}employees ORDER BY emp_no", self.prefix)
    }

    async fn one_by_one(
        &self,
        client: &Client,
        employees: usize,
        asked: impl Fn(),
    ) -> Result<Vec<Paid>, Error> {
        let list = self.employees(client).await?;
        asked();
        let statement = self.salaries_of_one();
        let mut found = Vec::new();
        for employee in list.iter().take(employees) {
            let rows = client.query_typed(&statement, &[(employee, Type::INT4)]).await?;
            found.extend(paid(&rows)?);
            asked();
        }
        Ok(found)
    }

    async fn with_any(
        &self,
        client: &Client,
        employees: usize,
        asked: impl Fn(),
    ) -> Result<Vec<Paid>, Error> {
        let mut list = self.employees(client).await?;
        asked();
        list.truncate(employees);
        let statement = format!(
            "SELECT emp_no, salary, from_date, to_date FROM {}salaries WHERE emp_no = ANY ($1) \
             ORDER BY emp_no, from_date",
            self.prefix
        );
        let rows = client.query_typed(&statement, &[(&list, Type::INT4_ARRAY)]).await?;
        asked();
        paid(&rows)
    }

    async fn with_join(&self, client: &Client, asked: impl Fn()) -> Result<Vec<Paid>, Error> {
        let statement = format!(
            "SELECT emp_no, salary, from_date, to_date FROM {0}employees JOIN {0}salaries USING (emp_no) \
             ORDER BY emp_no, from_date",
            self.prefix
        );
        let rows = client.query_typed(&statement, &[]).await?;
        asked();
        paid(&rows)
    }

    /// The numbers of all employees.
    async fn employees(&self, client: &Client) -> Result<Vec<i32>, Error> {
        let rows = client.query_typed(&self.list(), &[]).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }
}

fn paid(rows: &[Row]) -> Result<Vec<Paid>, Error> {
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

impl std::fmt::Display for Way {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(match self {
            Self::AsIs => "as is",
            Self::Any => "with ANY",
            Self::Join => "with JOIN",
            Self::Exact => "as is, with exact",
        })
    }
}
