//! A client that speaks the extended protocol in binary only: tokio-postgres, by its blocking wrapper.

mod support;

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use postgres::types::{Oid, ToSql, Type};
use postgres::{Client, NoTls, SimpleQueryMessage};
use support::Fixture;

const EMPLOYEES: i32 = 10_000;
/// Nine and ten in turn.
const SALARIES: i64 = 95_000;

const TABLES: &str = "
    CREATE TABLE employees (
        emp_no int PRIMARY KEY, birth_date date NOT NULL, first_name varchar(14) NOT NULL,
        last_name varchar(16) NOT NULL, gender char(1) NOT NULL, hire_date date NOT NULL
    );
    CREATE TABLE salaries (
        emp_no int NOT NULL REFERENCES employees (emp_no) ON DELETE CASCADE, salary int NOT NULL,
        from_date date NOT NULL, to_date date NOT NULL, PRIMARY KEY (emp_no, from_date)
    )";

fn connect(fixture: &Fixture) -> Client {
    let address = fixture.server.local_addr();
    Client::connect(&format!("host={} port={} user=ann dbname=shop", address.ip(), address.port()), NoTls)
        .unwrap()
}

fn copy(client: &mut Client, table: &str, text: &str) -> u64 {
    let mut sink = client.copy_in(&format!("COPY {table} FROM STDIN")).unwrap();
    sink.write_all(text.as_bytes()).unwrap();
    sink.finish().unwrap()
}

/// Two tables in the shape of the employees sample database.
fn load(client: &mut Client) -> Duration {
    let (mut employees, mut salaries) = (String::new(), String::new());
    for number in 1..=EMPLOYEES {
        let day = number % 28 + 1;
        let _ =
            writeln!(employees, "{number}\t1960-01-{day:02}\tGiven\tFamily {number}\tF\t1990-02-{day:02}");
        for year in 0..9 + number % 2 {
            let salary = 40_000 + number + year;
            let _ = writeln!(salaries, "{number}\t{salary}\t{}-01-01\t{}-01-01", 1990 + year, 1991 + year);
        }
    }
    let start = Instant::now();
    client.batch_execute(TABLES).unwrap();
    assert_eq!(copy(client, "employees", &employees), EMPLOYEES as u64);
    assert_eq!(copy(client, "salaries", &salaries), SALARIES as u64);
    start.elapsed()
}

#[test]
fn ten_thousand_employees_are_loaded_and_queried_in_binary() {
    let fixture = Fixture::new();
    let mut client = connect(&fixture);
    println!("loaded in {:?}", load(&mut client));

    let by_key = client
        .prepare("SELECT salary, from_date::text FROM salaries WHERE emp_no = $1 ORDER BY from_date")
        .unwrap();
    assert_eq!(by_key.params(), [Type::INT4]);
    for number in [1_i32, 2, EMPLOYEES] {
        let rows = client.query(&by_key, &[&number]).unwrap();
        assert_eq!(rows.len(), if number % 2 == 0 { 9 } else { 10 });
        assert_eq!((rows[1].get(0), rows[1].get(1)), (40_001 + number, "1991-01-01"));
    }

    let numbers: Vec<i32> = (1..=1000).collect();
    let any = client.prepare("SELECT emp_no, salary FROM salaries WHERE emp_no = ANY($1)").unwrap();
    assert_eq!(any.params(), [Type::INT4_ARRAY]);
    assert_eq!(client.query(&any, &[&numbers]).unwrap().len(), 9500);
    assert_eq!(client.query(&any, &[&Vec::<i32>::new()]).unwrap().len(), 0);

    let joined = client
        .query(
            "SELECT e.emp_no, e.last_name, max(s.salary), count(*) FROM employees e
             JOIN salaries s ON s.emp_no = e.emp_no WHERE e.emp_no <= $1 GROUP BY e.emp_no, e.last_name ORDER BY 1",
            &[&3_i32],
        ).unwrap();
    let read: Vec<(i32, &str, i32, i64)> =
        joined.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    assert_eq!(read, [(1, "Family 1", 40_010, 10), (2, "Family 2", 40_010, 9), (3, "Family 3", 40_012, 10)]);
}

#[test]
fn rows_inserted_by_arrays_and_in_a_transaction_are_there() {
    let fixture = Fixture::new();
    let mut client = connect(&fixture);
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text, c float8, d boolean, e bytea)").unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5) RETURNING a, e").unwrap();
    let mut transaction = client.transaction().unwrap();
    for number in 0..10_i32 {
        let text = (number % 2 == 0).then(|| format!("row {number}"));
        let values: [&(dyn ToSql + Sync); 5] =
            [&number, &text, &(f64::from(number) / 4.0), &(number > 5), &vec![number as u8; 3]];
        let row = transaction.query_one(&insert, &values).unwrap();
        assert_eq!((row.get(0), row.get(1)), (number, vec![number as u8; 3]));
    }
    transaction.commit().unwrap();
    let row = client.query_one("SELECT count(*), count(b), sum(c), bool_or(d) FROM t", &[]).unwrap();
    let read: (i64, i64, f64, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(read, (10, 5, 11.25, true));
    let duplicate = client.execute("INSERT INTO t (a) VALUES ($1)", &[&3_i32]).unwrap_err();
    assert_eq!(duplicate.code().map(|code| code.code()), Some("23505"));
    let simple = client.simple_query("SELECT a FROM t WHERE a = 3").unwrap();
    assert!(
        simple
            .iter()
            .any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("3")))
    );
}

/// What tokio-postgres asks when it meets an OID that it does not know (its `prepare.rs`).
#[test]
fn look_ups_of_types_are_answered_in_their_types() {
    let fixture = Fixture::new();
    let mut client = connect(&fixture);
    let types = client
        .prepare(
            "SELECT t.typname, t.typtype, t.typelem, r.rngsubtype, t.typbasetype, n.nspname, t.typrelid
             FROM pg_catalog.pg_type t
             LEFT OUTER JOIN pg_catalog.pg_range r ON r.rngtypid = t.oid
             INNER JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid
             WHERE t.oid = $1",
        )
        .unwrap();
    for (ty, element) in [(Type::INT4, 0), (Type::INT4_ARRAY, Type::INT4.oid()), (Type::UUID, 0)] {
        let row = client.query_one(&types, &[&ty.oid()]).unwrap();
        let kind: i8 = row.get(1);
        let (name, elements, subtype): (&str, Oid, Option<Oid>) = (row.get(0), row.get(2), row.get(3));
        assert_eq!((name, kind as u8, elements, subtype), (ty.name(), b'b', element, None));
        assert_eq!((row.get::<_, Oid>(4), row.get::<_, &str>(5), row.get::<_, Oid>(6)), (0, "pg_catalog", 0));
    }
    let labels = "SELECT enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = $1 ORDER BY enumsortorder";
    assert!(client.query(labels, &[&Type::INT4.oid()]).unwrap().is_empty());
    let fields = "SELECT attname, atttypid FROM pg_catalog.pg_attribute
                  WHERE attrelid = $1 AND NOT attisdropped AND attnum > 0 ORDER BY attnum";
    client.batch_execute("CREATE TABLE pair (one int, two text)").unwrap();
    let row = client.query_one("SELECT oid FROM pg_class WHERE relname = 'pair'", &[]).unwrap();
    let columns = client.query(fields, &[&row.get::<_, Oid>(0)]).unwrap();
    let read: Vec<(&str, Oid)> = columns.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(read, [("one", Type::INT4.oid()), ("two", Type::TEXT.oid())]);
}
