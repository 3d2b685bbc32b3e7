//! The tables of the story: employees and what they were paid each year, in the shape of MySQL's employees sample.

use std::ops::Range;

/// The first employee's number, as in the sample.
const FIRST_NUMBER: i32 = 10_001;
/// Most salaries of an employee; from one on all are equally likely, so that the mean is 9.5 as in the sample.
const SALARIES_MAX: u64 = 18;
/// Salaries begin between these amounts.
const FIRST_PAY: Range<u64> = 38_000..70_000;
/// Most that a salary falls in a year.
const CUT_MAX: i32 = 1_000;
/// A change from year to year, counted from the deepest cut, is less than this.
const CHANGE_RANGE: u64 = 5_000;
/// Years in which people were hired.
const HIRING_YEARS: Range<u64> = 1985..2000;

const FIRST_NAMES: [&str; 32] = [
    "Ada",
    "Anneke",
    "Bezalel",
    "Chirstian",
    "Divier",
    "Duangkaew",
    "Eberhardt",
    "Elvis",
    "Erez",
    "Florian",
    "Georgi",
    "Guoxiang",
    "Hilari",
    "Jayson",
    "Kazuhide",
    "Kyoichi",
    "Lillian",
    "Magy",
    "Mary",
    "Mayuko",
    "Otmar",
    "Parto",
    "Patricio",
    "Premal",
    "Ramzi",
    "Saniya",
    "Sumant",
    "Tse",
    "Tzvetan",
    "Uri",
    "Weiyi",
    "Yishay",
];
const LAST_NAMES: [&str; 32] = [
    "Awdeh",
    "Baek",
    "Bamford",
    "Bouloucos",
    "Bridgland",
    "Cappelletti",
    "Erde",
    "Facello",
    "Genin",
    "Haddadi",
    "Heyers",
    "Joslin",
    "Kalloufi",
    "Koblick",
    "Lortz",
    "Maliniak",
    "Mandell",
    "Menhoudj",
    "Montemayor",
    "Nooteboom",
    "Pettey",
    "Peac",
    "Peha",
    "Piveteau",
    "Preusig",
    "Reistad",
    "Simmel",
    "Sluis",
    "Stamatiou",
    "Terkki",
    "Tramer",
    "Zielinski",
];

/// Everybody, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Staff {
    employees: Vec<Employee>,
    salaries: Vec<Salary>,
}

#[derive(Debug)]
struct Employee {
    number: i32,
    first_name: &'static str,
    last_name: &'static str,
    hired: Date,
}

/// What an employee was paid for a year.
#[derive(Debug)]
struct Salary {
    employee: i32,
    amount: i32,
    from: Date,
}

/// A day that every month has.
#[derive(Debug, Clone, Copy)]
struct Date {
    year: u64,
    month: u64,
    day: u64,
}

/// An employee's number and one of the salaries: a row of the answer that the program is after.
pub(super) type Paid = (i32, i32);

impl Staff {
    /// So many employees; the same ones every time.
    pub(super) fn generate(count: u32) -> Self {
        let mut random = fastrand::Rng::with_seed(0);
        let mut staff = Self { employees: Vec::new(), salaries: Vec::new() };
        for number in (FIRST_NUMBER..).take(count as usize) {
            let hired =
                Date { year: random.u64(HIRING_YEARS), month: random.u64(1..=12), day: random.u64(1..=28) };
            staff.employees.push(Employee {
                number,
                first_name: FIRST_NAMES[random.usize(..FIRST_NAMES.len())],
                last_name: LAST_NAMES[random.usize(..LAST_NAMES.len())],
                hired,
            });
            let mut amount = random.u64(FIRST_PAY) as i32;
            for year in 0..=random.u64(..SALARIES_MAX) {
                staff.salaries.push(Salary { employee: number, amount, from: hired.years_later(year) });
                amount += random.u64(..CHANGE_RANGE) as i32 - CUT_MAX;
            }
        }
        staff
    }

    pub(super) fn employee_count(&self) -> usize {
        self.employees.len()
    }

    pub(super) fn salary_count(&self) -> usize {
        self.salaries.len()
    }

    /// What the program must find for the first so many employees, in the order of employees and years.
    pub(super) fn paid_to_first(&self, employees: usize) -> Vec<Paid> {
        let Some(last) = self.employees.iter().take(employees).next_back() else { return Vec::new() };
        let theirs = self.salaries.iter().take_while(|salary| salary.employee <= last.number);
        theirs.map(|salary| (salary.employee, salary.amount)).collect()
    }

    /// The employees as lines of COPY's text format.
    pub(super) fn employee_lines(&self) -> impl Iterator<Item = String> {
        self.employees.iter().map(|employee| {
            let Employee { number, first_name, last_name, hired } = employee;
            format!("{number}\t{first_name}\t{last_name}\t{hired}\n")
        })
    }

    /// The salaries as lines of COPY's text format.
    pub(super) fn salary_lines(&self) -> impl Iterator<Item = String> {
        self.salaries.iter().map(|salary| {
            let Salary { employee, amount, from } = salary;
            format!("{employee}\t{amount}\t{from}\t{}\n", from.years_later(1))
        })
    }
}

impl Date {
    fn years_later(self, years: u64) -> Self {
        Self { year: self.year + years, ..self }
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_staff_is_the_same_every_time_and_as_large_as_in_the_sample() {
        let (staff, again) = (Staff::generate(10_000), Staff::generate(10_000));
        assert_eq!(staff.paid_to_first(10_000), again.paid_to_first(10_000));
        let per_employee = staff.salary_count() as f64 / staff.employee_count() as f64;
        assert!((9.2..9.8).contains(&per_employee), "{per_employee}");
        let mut days: Vec<_> =
            staff.salaries.iter().map(|salary| (salary.employee, salary.from.year)).collect();
        days.dedup();
        assert_eq!(days.len(), staff.salary_count(), "one salary for an employee and a year");
    }

    #[test]
    fn a_part_of_the_staff_is_its_beginning() {
        let staff = Staff::generate(20);
        let (few, all) = (staff.paid_to_first(5), staff.paid_to_first(20));
        assert_eq!(few, all[..few.len()]);
        assert!(few.iter().all(|(employee, _)| *employee < FIRST_NUMBER + 5));
        assert_eq!(all.len(), staff.salary_count());
        assert!(staff.salary_lines().next().unwrap().starts_with("10001\t"));
    }
}
