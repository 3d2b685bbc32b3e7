import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Properties;

/**
 * The story loop of pgjdbc: {@code Story.java loop|reads COUNT}. A statement is prepared on the server when it runs for
 * the fifth time, and its values are binary from then on.
 */
public final class Story {
  private static final String EMPLOYEES = "SELECT id, name FROM emp ORDER BY id";
  private static final String SALARY = "SELECT amount FROM salary WHERE emp_id = ?";

  private record Employee(int id, String name) {}

  private final Connection connection;
  private final int count;
  private final List<String> lines = new ArrayList<>();
  private double milliseconds;

  private Story(Connection connection, int count) {
    this.connection = connection;
    this.count = count;
  }

  private void loop() throws SQLException {
    connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
    connection.setAutoCommit(false);
    long began = System.nanoTime();
    try (PreparedStatement salary = connection.prepareStatement(SALARY)) {
      for (Employee employee : employees()) {
        lines.add(employee.id() + " " + employee.name());
        readSalary(salary, employee.id());
      }
    }
    connection.commit();
    milliseconds = (System.nanoTime() - began) / 1e6;
  }

  /** All of them are read, the first {@code count} returned. */
  private List<Employee> employees() throws SQLException {
    List<Employee> employees = new ArrayList<>();
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery(EMPLOYEES)) {
      while (rows.next()) {
        employees.add(new Employee(rows.getInt(1), rows.getString(2)));
      }
    }
    return employees.subList(0, Math.min(count, employees.size()));
  }

  private void readSalary(PreparedStatement salary, int employee) throws SQLException {
    salary.setInt(1, employee);
    try (ResultSet rows = salary.executeQuery()) {
      while (rows.next()) {
        lines.add(Integer.toString(rows.getInt(1)));
      }
    }
  }

  private void reads() throws SQLException {
    connection.setAutoCommit(false);
    long began = System.nanoTime();
    for (int number = 1; number <= count; number++) {
      try (PreparedStatement salary = connection.prepareStatement(SALARY)) {
        readSalary(salary, 100 + 3 * number);
      }
      connection.commit();
    }
    milliseconds = (System.nanoTime() - began) / 1e6;
  }

  private void print() throws Exception {
    byte[] read = String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(read);
    String checksum = HexFormat.of().formatHex(digest, 0, 8);
    System.out.println(String.format(Locale.ROOT, "%.1f %s", milliseconds, checksum));
  }

  private static Connection connect() throws SQLException {
    Properties login = new Properties();
    login.setProperty("user", System.getenv("PGUSER"));
    login.setProperty("password", System.getenv().getOrDefault("PGPASSWORD", ""));
    String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
        + System.getenv("PGDATABASE");
    return DriverManager.getConnection(url, login);
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2 || !List.of("loop", "reads").contains(arguments[0])) {
      System.err.println("usage: Story.java loop|reads COUNT");
      System.exit(2);
    }
    try (Connection connection = connect()) {
      Story story = new Story(connection, Integer.parseInt(arguments[1]));
      if (arguments[0].equals("loop")) {
        story.loop();
      } else {
        story.reads();
      }
      story.print();
    }
  }
}
