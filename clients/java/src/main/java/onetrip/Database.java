package onetrip;

import com.mysql.cj.jdbc.MysqlDataSource;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.Properties;
import javax.sql.DataSource;
import org.mariadb.jdbc.MariaDbDataSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What an act connects to by which driver: the address, and the SQL that only one of them has. */
enum Database {
  POSTGRES(
      "jdbc:postgresql://" + environment("PGHOST", "localhost") + ":"
          + environment("PGPORT", "5432") + "/" + environment("PGDATABASE", "postgres"),
      environment("PGUSER", "postgres"),
      environment("PGPASSWORD", "")),
  MARIADB("jdbc:mariadb://" + mysqlAddress()),
  MYSQL("jdbc:mysql://" + mysqlAddress());

  private final String url;
  private final String user;
  private final String password;

  Database(String url) {
    this(url, environment("MYSQL_USER", "root"), environment("MYSQL_PWD", ""));
  }

  Database(String url, String user, String password) {
    this.url = url;
    this.user = user;
    this.password = password;
  }

  private static String mysqlAddress() {
    return environment("MYSQL_HOST", "localhost") + ":" + environment("MYSQL_TCP_PORT", "3306")
        + "/" + environment("MYSQL_DATABASE", "test");
  }

  private static String environment(String name, String fallback) {
    return System.getenv().getOrDefault(name, fallback);
  }

  /** Of JDBC_URL where that is set. */
  String url() {
    return environment("JDBC_URL", url);
  }

  Properties login() {
    Properties login = new Properties();
    login.setProperty("user", user);
    login.setProperty("password", password);
    return login;
  }

  /** A data source without a pool. */
  DataSource dataSource() {
    try {
      return switch (this) {
        case POSTGRES -> {
          PGSimpleDataSource source = new PGSimpleDataSource();
          source.setUrl(url());
          source.setUser(user);
          source.setPassword(password);
          yield source;
        }
        case MARIADB -> {
          MariaDbDataSource source = new MariaDbDataSource(url());
          source.setUser(user);
          source.setPassword(password);
          yield source;
        }
        case MYSQL -> {
          MysqlDataSource source = new MysqlDataSource();
          source.setUrl(url());
          source.setUser(user);
          source.setPassword(password);
          yield source;
        }
      };
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Ends a condition on a column: it is one of the values that {@link #bind} sets. */
  String isOneOf(int count) {
    return this == POSTGRES ? " = ANY(?)" : " IN (?" + ", ?".repeat(count - 1) + ")";
  }

  void bind(PreparedStatement statement, List<Integer> values) throws SQLException {
    if (this == POSTGRES) {
      Connection connection = statement.getConnection();
      statement.setArray(1, connection.createArrayOf("integer", values.toArray()));
      return;
    }
    for (int i = 0; i < values.size(); i++) {
      statement.setInt(i + 1, values.get(i));
    }
  }

  /** Name, titles and highest price of an author in one row. */
  String authorPage() {
    String titles = this == POSTGRES ? "array_agg" : "group_concat";
    return "SELECT name, " + titles + "(title ORDER BY books.id), max(price) FROM authors"
        + " JOIN books ON author_id = authors.id WHERE authors.id = ? GROUP BY authors.id";
  }

  String insertTagUnlessThere() {
    return this == POSTGRES
        ? "INSERT INTO tags (name) VALUES (?) ON CONFLICT DO NOTHING"
        : "INSERT IGNORE INTO tags (name) VALUES (?)";
  }

  int defaultIsolation() {
    return this == POSTGRES
        ? Connection.TRANSACTION_READ_COMMITTED
        : Connection.TRANSACTION_REPEATABLE_READ;
  }
}
