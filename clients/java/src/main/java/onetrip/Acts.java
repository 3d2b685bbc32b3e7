package onetrip;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.UUID;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Runs one act: {@code java onetrip.Acts DRIVER ACT}, or {@code DRIVER --list}.
 *
 * <p>The connection comes from JDBC_URL where that is set, or else from the PG* environment, or
 * from MYSQL_* for the drivers of MySQL.
 * Nothing is printed on success.
 */
public final class Acts {
  // What the seeded tables hold (clients/schema.sql).
  static final int AUTHOR_COUNT = 12;
  static final int BOOKS_PER_AUTHOR = 3;
  static final int LOOP_COUNT = 10;
  static final int WALK_ROWS = 50;
  static final int TABLE_ROWS = 200;
  static final int WRITE_ROWS = 20;
  /** Rows that the acts of mappers but Hibernate write one by one: enough for each finding. */
  static final int FEW = 8;
  static final List<Integer> ACCOUNT_IDS =
      List.of(311, 324, 338, 347, 359, 366, 372, 385, 394, 408,
          419, 423, 437, 446, 458, 469, 471, 483, 495, 502);
  static final List<Integer> FILE_IDS = List.of(613, 627, 634);
  static final byte[] FILE_CONTENT = "0123456789".repeat(30).getBytes(StandardCharsets.US_ASCII);
  static final int FILE_PORTION = 100;
  static final List<Integer> PAGE_AUTHORS = List.of(112, 140, 175, 203);

  /** What the driver of this run connects to: a run performs one act. */
  static Database database = Database.POSTGRES;

  /** One act; any exception is its failure. */
  @FunctionalInterface
  interface Act {
    void run() throws Exception;
  }

  private Acts() {}

  static void expect(Object actual, Object wanted) {
    if (!Objects.equals(actual, wanted)) {
      throw new AssertionError("got " + actual + ", wanted " + wanted);
    }
  }

  static List<String> messages(int count) {
    return IntStream.rangeClosed(1, count).mapToObj(number -> "message " + number).toList();
  }

  /** Names that no row has. */
  static List<String> unseen() {
    return Stream.generate(() -> "unseen " + UUID.randomUUID()).limit(WRITE_ROWS).toList();
  }

  static String url() {
    return database.url();
  }

  static Properties login() {
    return database.login();
  }

  static Connection connect() throws SQLException {
    return DriverManager.getConnection(url(), login());
  }

  /** With settings of the driver, which may stand in the URL as well. */
  static Connection connect(Map<String, String> settings) throws SQLException {
    Properties properties = login();
    properties.putAll(settings);
    return DriverManager.getConnection(url(), properties);
  }

  private static Map<String, Act> actsOf(String driver) {
    return switch (driver) {
      case "pgjdbc" -> JdbcActs.all();
      case "hikari" -> HikariActs.all();
      case "hibernate" -> HibernateActs.all();
      case "spring-data" -> SpringDataActs.all();
      case "mybatis" -> MyBatisActs.all();
      case "jooq" -> JooqActs.all();
      case "mariadb-j" -> MysqlActs.ofMariadb();
      case "connector-j" -> MysqlActs.ofMysql();
      case "hibernate-mariadb" -> HibernateActs.ofMariadb();
      default -> new LinkedHashMap<>();
    };
  }

  public static void main(String[] arguments) throws Exception {
    Logger.getLogger("").setLevel(Level.OFF);
    database = switch (arguments.length > 0 ? arguments[0] : "") {
      case "mariadb-j", "hibernate-mariadb" -> Database.MARIADB;
      case "connector-j" -> Database.MYSQL;
      default -> Database.POSTGRES;
    };
    Map<String, Act> acts = arguments.length == 2 ? actsOf(arguments[0]) : Map.of();
    if (!acts.isEmpty() && arguments[1].equals("--list")) {
      acts.keySet().forEach(System.out::println);
      return;
    }
    Act act = arguments.length == 2 ? acts.get(arguments[1]) : null;
    if (act == null) {
      System.err.println("usage: onetrip.Acts pgjdbc|hikari|hibernate|spring-data|mybatis|jooq"
          + "|mariadb-j|connector-j|hibernate-mariadb ACT|--list");
      System.exit(2);
    }
    act.run();
  }
}
