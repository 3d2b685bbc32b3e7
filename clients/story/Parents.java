import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Parents with two lazy collections, by Hibernate on pgjdbc: {@code Parents.java parents COUNT}. */
public final class Parents {
  private Parents() {}

  @Entity(name = "Toy")
  @Table(name = "toy")
  public static class Toy {
    @Id int id;
    String name;
  }

  @Entity(name = "Book")
  @Table(name = "book")
  public static class Book {
    @Id int id;
    String name;
  }

  @Entity(name = "Parent")
  @Table(name = "parent")
  public static class Parent {
    @Id int id;
    String name;

    @OneToMany
    @JoinColumn(name = "parent_id")
    List<Toy> toys;

    @OneToMany
    @JoinColumn(name = "parent_id")
    List<Book> books;
  }

  private static Properties settings() {
    Properties settings = new Properties();
    settings.put("hibernate.connection.url", "jdbc:postgresql://" + System.getenv("PGHOST") + ":"
        + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"));
    settings.put("hibernate.connection.username", System.getenv("PGUSER"));
    settings.put("hibernate.connection.password", System.getenv().getOrDefault("PGPASSWORD", ""));
    settings.put("hibernate.connection.isolation", String.valueOf(Connection.TRANSACTION_REPEATABLE_READ));
    settings.put("hibernate.connection.pool_size", "1");
    return settings;
  }

  private static List<String> read(Session session, int count) {
    List<String> lines = new ArrayList<>();
    List<Parent> parents = session.createQuery("from Parent order by id", Parent.class).list();
    for (Parent parent : parents.subList(0, Math.min(count, parents.size()))) {
      lines.add(parent.id + " " + parent.name);
      parent.toys.stream().map(toy -> toy.name).sorted().forEach(lines::add);
      parent.books.stream().map(book -> book.name).sorted().forEach(lines::add);
    }
    return lines;
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2 || !arguments[0].equals("parents")) {
      System.err.println("usage: Parents.java parents COUNT");
      System.exit(2);
    }
    Logger.getLogger("org.hibernate").setLevel(Level.SEVERE);
    // Hibernate looks for entities there, and this file is compiled into memory.
    Thread.currentThread().setContextClassLoader(Parents.class.getClassLoader());
    int count = Integer.parseInt(arguments[1]);
    Configuration configuration = new Configuration().setProperties(settings());
    List.of(Toy.class, Book.class, Parent.class).forEach(configuration::addAnnotatedClass);
    try (SessionFactory factory = configuration.buildSessionFactory()) {
      long began = System.nanoTime();
      List<String> lines = factory.fromTransaction(session -> read(session, count));
      double milliseconds = (System.nanoTime() - began) / 1e6;
      byte[] text = String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(text);
      String checksum = HexFormat.of().formatHex(digest, 0, 8);
      System.out.println(String.format(Locale.ROOT, "%.1f %s", milliseconds, checksum));
    }
  }
}
