package onetrip;

import static onetrip.Acts.AUTHOR_COUNT;
import static onetrip.Acts.BOOKS_PER_AUTHOR;
import static onetrip.Acts.LOOP_COUNT;
import static onetrip.Acts.TABLE_ROWS;
import static onetrip.Acts.WALK_ROWS;
import static onetrip.Acts.WRITE_ROWS;
import static onetrip.Acts.expect;
import static onetrip.Acts.messages;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.stream.Stream;
import onetrip.Acts.Act;
import onetrip.Entities.Account;
import onetrip.Entities.Author;
import onetrip.Entities.Event;
import onetrip.Entities.Item;
import onetrip.Entities.Log;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate over pgjdbc or MariaDB Connector/J, with its built-in pool of one connection. */
final class HibernateActs {
  private HibernateActs() {}

  static Map<String, Act> all() {
    Map<String, Act> acts = new LinkedHashMap<>();
    addCosts(acts);
    addFindings(acts);
    HibernatePatterns.addTo(acts);
    return acts;
  }

  /** The driver walks without a cursor, and MariaDB has no large objects. */
  static Map<String, Act> ofMariadb() {
    Map<String, Act> acts = all();
    acts.keySet().removeIf(act -> act.endsWith("OT004") || act.endsWith("OT010"));
    acts.put("trap_streamed", inSession(session -> walk(session, 10, TABLE_ROWS)));
    acts.put("trap_two_of_each", inSession(session -> booksOfEach(session, 2)));
    acts.put("trap_known_object", inSession(session -> tenIds().forEach(id ->
        expect(session.find(Author.class, 140).name, "author 140"))));
    return acts;
  }

  private static void addCosts(Map<String, Act> acts) {
    acts.put("connect", started(factory -> {}));
    acts.put("txn_1", inTransaction(session -> expectItem(session, 1)));
    acts.put("txn_2", inTransaction(session -> {
      expectItem(session, 1);
      expectItem(session, 2);
    }));
    acts.put("update_obj", inTransaction(session -> addOne(session.find(Account.class, 311))));
    acts.put("update_obj_5", inTransaction(session -> accounts(session, 5).forEach(
        HibernateActs::addOne)));
    acts.put("merge_obj", inTransaction(session -> {
      Account detached = new Account();
      detached.id = 324;
      detached.balance = 5000;
      session.merge(detached).balance += 1;
    }));
    acts.put("cursor_50_by_10", inTransaction(session -> walk(session, 10, WALK_ROWS)));
    acts.put("n_plus_one_10", inTransaction(session -> booksOfEach(session, LOOP_COUNT)));
  }

  private static void addFindings(Map<String, Act> acts) {
    acts.put("bad_OT001", inTransaction(session -> booksOfEach(session, AUTHOR_COUNT)));
    acts.put("fixed_OT001", inTransaction(HibernateActs::booksByJoinFetch));
    // An identity column makes the mapper insert row by row, whatever the batch size.
    acts.put("bad_OT002", started(batching(), factory -> transact(factory, session ->
        messages(WRITE_ROWS).forEach(text -> session.persist(new Log(text))))));
    acts.put("bad_OT002_update", inTransaction(session ->
        accounts(session, WRITE_ROWS).forEach(HibernateActs::addOne)));
    acts.put("fixed_OT002", started(batching(), factory -> transact(factory, session ->
        messages(WRITE_ROWS).forEach(text -> session.persist(new Event(text))))));
    acts.put("fixed_OT002_update", started(batching(), factory -> transact(factory, session ->
        accounts(session, WRITE_ROWS).forEach(HibernateActs::addOne))));
    acts.put("bad_OT003", started(factory -> messages(WRITE_ROWS).forEach(text ->
        transact(factory, session -> session.persist(new Log(text))))));
    acts.put("fixed_OT003", acts.get("fixed_OT002"));
    acts.put("bad_OT004", inTransaction(session -> walk(session, 10, TABLE_ROWS)));
    acts.put("fixed_OT004", inTransaction(session -> walk(session, 1000, TABLE_ROWS)));
    acts.put("bad_OT005", inTransaction(session -> repeat(session, 10)));
    acts.put("fixed_OT005", inTransaction(session -> repeat(session, 1)));
    acts.put("bad_OT006", started(factory -> tenIds().forEach(id ->
        transact(factory, session -> expectItem(session, id)))));
    acts.put("fixed_OT006", started(autoCommit(), HibernateActs::tenReads));
    acts.put("bad_OT008", started(unpooled(), HibernateActs::tenReads));
    acts.put("fixed_OT008", started(autoCommit(), HibernateActs::tenReads));
  }

  private static Properties pooled() {
    Properties properties = new Properties();
    properties.put("hibernate.connection.url", Acts.url());
    properties.put("hibernate.connection.username", Acts.login().getProperty("user"));
    properties.put("hibernate.connection.password", Acts.login().getProperty("password"));
    properties.put("hibernate.connection.pool_size", "1");
    return properties;
  }

  private static Properties batching() {
    Properties properties = pooled();
    properties.put("hibernate.jdbc.batch_size", "50");
    return properties;
  }

  static Properties autoCommit() {
    Properties properties = pooled();
    properties.put("hibernate.connection.autocommit", "true");
    return properties;
  }

  /** A data source without a pool: each session opens a connection of its own. */
  private static Properties unpooled() {
    Properties properties = new Properties();
    properties.put("hibernate.connection.datasource", Acts.database.dataSource());
    return properties;
  }

  static Act started(Consumer<SessionFactory> work) {
    return started(pooled(), work);
  }

  static Act started(Properties properties, Consumer<SessionFactory> work) {
    return () -> {
      Configuration configuration = new Configuration().setProperties(properties);
      Entities.ALL.forEach(configuration::addAnnotatedClass);
      try (SessionFactory factory = configuration.buildSessionFactory()) {
        work.accept(factory);
      }
    };
  }

  static Act inTransaction(Consumer<Session> work) {
    return started(factory -> transact(factory, work));
  }

  /** Without a transaction, so with autocommit. */
  private static Act inSession(Consumer<Session> work) {
    return started(autoCommit(), factory -> factory.inSession(work));
  }

  static void transact(SessionFactory factory, Consumer<Session> work) {
    factory.inTransaction(work);
  }

  private static void expectItem(Session session, int id) {
    expect(session.find(Item.class, id).v, "value " + id);
  }

  private static List<Account> accounts(Session session, int limit) {
    return session.createQuery("from Account order by id", Account.class)
        .setMaxResults(limit).list();
  }

  private static void addOne(Account account) {
    account.balance += 1;
  }

  private static void walk(Session session, int fetchSize, int rowCount) {
    try (Stream<Item> rows = session
        .createQuery("from Item where id <= :last order by id", Item.class)
        .setParameter("last", rowCount).setReadOnly(true).setFetchSize(fetchSize).stream()) {
      expect(rows.count(), (long) rowCount);
    }
  }

  private static void booksOfEach(Session session, int limit) {
    List<Author> authors = session.createQuery("from Author order by id", Author.class)
        .setMaxResults(limit).list();
    expect(authors.size(), limit);
    authors.forEach(author -> expect(author.books.size(), BOOKS_PER_AUTHOR));
  }

  private static void booksByJoinFetch(Session session) {
    List<Author> authors = session
        .createQuery("from Author a left join fetch a.books order by a.id", Author.class).list();
    expect(authors.stream().mapToInt(author -> author.books.size()).sum(),
        AUTHOR_COUNT * BOOKS_PER_AUTHOR);
  }

  private static void repeat(Session session, int times) {
    for (int i = 0; i < times; i++) {
      Author author = session.createQuery("from Author where name = :name", Author.class)
          .setParameter("name", "author 140").getSingleResult();
      expect(author.id, 140);
    }
  }

  private static Stream<Integer> tenIds() {
    return Stream.iterate(7, id -> id <= 70, id -> id + 7);
  }

  private static void tenReads(SessionFactory factory) {
    tenIds().forEach(id -> factory.inSession(session -> expectItem(session, id)));
  }
}
