package onetrip;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.Lob;
import jakarta.persistence.OneToMany;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import java.math.BigDecimal;
import java.sql.Blob;
import java.util.List;

/** The tables of clients/schema.sql. */
final class Entities {
  static final List<Class<?>> ALL =
      List.of(Author.class, Book.class, Item.class, Log.class, Account.class, Event.class,
          Ticket.class, Tag.class, FileRow.class);

  private Entities() {}

  @Entity(name = "Author")
  @Table(name = "authors")
  static class Author {
    @Id int id;
    String name;

    @OneToMany
    @JoinColumn(name = "author_id")
    List<Book> books;
  }

  @Entity(name = "Book")
  @Table(name = "books")
  static class Book {
    @Id int id;
    String title;
    BigDecimal price;
  }

  @Entity(name = "Item")
  @Table(name = "t")
  static class Item {
    @Id int id;
    String v;
  }

  @Entity(name = "Log")
  @Table(name = "log")
  static class Log {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;

    String message;

    Log() {}

    Log(String message) {
      this.message = message;
    }
  }

  @Entity(name = "Account")
  @Table(name = "accounts")
  static class Account {
    @Id int id;
    int balance;
  }

  @Entity(name = "Event")
  @Table(name = "events")
  static class Event {
    @Id
    @GeneratedValue(generator = "events_id_seq")
    @SequenceGenerator(name = "events_id_seq", sequenceName = "events_id_seq", allocationSize = 50)
    Long id;

    String note;

    Event() {}

    Event(String note) {
      this.note = note;
    }
  }

  @Entity(name = "Ticket")
  @Table(name = "tickets")
  static class Ticket {
    @Id
    @GeneratedValue(generator = "tickets_id_seq")
    @SequenceGenerator(name = "tickets_id_seq", sequenceName = "tickets_id_seq", allocationSize = 1)
    Long id;

    String note;

    Ticket() {}

    Ticket(String note) {
      this.note = note;
    }
  }

  @Entity(name = "Tag")
  @Table(name = "tags")
  static class Tag {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;

    String name;

    Tag() {}

    Tag(String name) {
      this.name = name;
    }
  }

  @Entity(name = "File")
  @Table(name = "files")
  static class FileRow {
    @Id int id;
    @Lob Blob content;
  }
}
