import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import java.util.List;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

public class HibernateProgram {
    @Entity(name = "Author")
    @Table(name = "author")
    public static class Author {
        @Id int id;

        @OneToMany
        @JoinColumn(name = "author_id")
        List<Book> books;
    }

    @Entity(name = "Book")
    @Table(name = "book")
    public static class Book {
        @Id int id;

        @Column(name = "title")
        String title;
    }

    /** Hikari makes its connections in a thread of its own. */
    static HikariDataSource pool() {
        // Whether it asks if a connection lives would depend on how long a JVM needs.
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "600000");
        var config = new HikariConfig();
        config.setDataSourceClassName("org.postgresql.ds.PGSimpleDataSource");
        config.addDataSourceProperty("serverName", System.getenv("PGHOST"));
        config.addDataSourceProperty("portNumber", System.getenv("PGPORT"));
        config.addDataSourceProperty("databaseName", System.getenv("PGDATABASE"));
        config.setUsername(System.getenv("PGUSER"));
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(1);
        return new HikariDataSource(config);
    }

    static void titles(SessionFactory factory) {
        factory.inTransaction(session -> {
            for (var author : session.createQuery("from Author order by id", Author.class).list()) {
                author.books.size(); // OT001
            }
        });
    }

    static void notes(SessionFactory factory) {
        factory.inTransaction(session -> {
            for (int note = 0; note < 20; note++) {
                var insert = session.createNativeMutationQuery("INSERT INTO note (body) VALUES (:body)");
                insert.setParameter("body", "note " + note).executeUpdate(); // OT002
            }
        });
    }

    public static void main(String[] arguments) {
        try (var pool = pool()) {
            var configuration = new Configuration().addAnnotatedClass(Author.class).addAnnotatedClass(Book.class);
            configuration.getProperties().put("hibernate.connection.datasource", pool);
            try (var factory = configuration.buildSessionFactory()) {
                titles(factory);
                notes(factory);
            }
        }
    }
}
