package onetrip;

import static onetrip.Acts.ACCOUNT_IDS;
import static onetrip.Acts.AUTHOR_COUNT;
import static onetrip.Acts.BOOKS_PER_AUTHOR;
import static onetrip.Acts.FEW;
import static onetrip.Acts.expect;
import static onetrip.Acts.messages;
import static onetrip.Acts.unseen;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import jakarta.persistence.EntityManagerFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import javax.sql.DataSource;
import onetrip.Acts.Act;
import onetrip.Entities.Account;
import onetrip.Entities.Author;
import onetrip.Entities.Event;
import onetrip.Entities.Log;
import onetrip.Entities.Tag;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.domain.Limit;
import org.springframework.data.jpa.repository.EntityGraph;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Modifying;
import org.springframework.data.jpa.repository.Query;
import org.springframework.data.jpa.repository.config.EnableJpaRepositories;
import org.springframework.data.repository.query.Param;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;
import org.springframework.orm.jpa.vendor.HibernateJpaVendorAdapter;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * Spring Data JPA over Hibernate, HikariCP and pgjdbc: Hibernate on the wire, and so in reports. Each fixed act does what
 * Hibernate's advice says (core/ledger/src/stacks/data).
 */
final class SpringDataActs {
  private SpringDataActs() {}

  static Map<String, Act> all() {
    Map<String, Act> acts = new LinkedHashMap<>();
    acts.put("bad_OT001", inTransaction(tables ->
        expectBooks(tables.of(Authors.class).findAllByOrderById())));
    acts.put("fixed_OT001", inTransaction(tables ->
        expectBooks(tables.of(Authors.class).findAllWithBooksByOrderById())));
    acts.put("bad_OT002", inTransaction(SpringDataActs::insertEach));
    acts.put("fixed_OT002", inTransaction(Batching.class, SpringDataActs::insertAll));
    acts.put("bad_OT002_update", inTransaction(SpringDataActs::addOneToEach));
    acts.put("fixed_OT002_update", inTransaction(Batching.class, SpringDataActs::addOneToEach));
    acts.put("bad_OT003", started(Base.class, SpringDataActs::insertEach));
    acts.put("fixed_OT003", inTransaction(Batching.class, SpringDataActs::insertAll));
    acts.put("bad_OT005", inTransaction(tables -> repeat(() ->
        tables.of(Authors.class).findByName("author 140"))));
    acts.put("fixed_OT005", inTransaction(tables -> repeat(() ->
        tables.of(Authors.class).findById(140).orElseThrow())));
    acts.put("bad_OT009", inTransaction(tables -> ids(12).forEach(id ->
        expect(tables.of(Accounts.class).findById(id).isPresent(), true))));
    acts.put("fixed_OT009", inTransaction(tables ->
        expect(tables.of(Accounts.class).findAllById(ids(12)).size(), 12)));
    acts.put("bad_OT013", inTransaction(tables -> ids(FEW).forEach(id -> {
      Account account = tables.of(Accounts.class).findById(id).orElseThrow();
      account.balance += 1;
      tables.of(Accounts.class).saveAndFlush(account);
    })));
    acts.put("fixed_OT013", inTransaction(tables -> ids(FEW).forEach(id ->
        expect(tables.of(Accounts.class).addOne(id), 1))));
    acts.put("bad_OT015", inTransaction(tables -> unseen().subList(0, FEW).forEach(name -> {
      if (tables.of(Tags.class).findByName(name) == null) {
        tables.of(Tags.class).save(new Tag(name));
      }
    })));
    acts.put("fixed_OT015", inTransaction(tables -> unseen().subList(0, FEW).forEach(name ->
        expect(tables.of(Tags.class).insertUnlessThere(name), 1))));
    return acts;
  }

  interface Authors extends JpaRepository<Author, Integer> {
    List<Author> findAllByOrderById();

    @EntityGraph(attributePaths = "books")
    List<Author> findAllWithBooksByOrderById();

    Author findByName(String name);
  }

  interface Logs extends JpaRepository<Log, Long> {}

  interface Events extends JpaRepository<Event, Long> {}

  interface Accounts extends JpaRepository<Account, Integer> {
    List<Account> findAllByOrderById(Limit limit);

    @Modifying
    @Query("update Account a set a.balance = a.balance + 1 where a.id = :id")
    int addOne(@Param("id") int id);
  }

  interface Tags extends JpaRepository<Tag, Long> {
    Tag findByName(String name);

    @Modifying
    @Query("insert into Tag (name) values (:name) on conflict do nothing")
    int insertUnlessThere(@Param("name") String name);
  }

  /** The repositories. */
  interface Tables {
    <T> T of(Class<T> repository);
  }

  @Configuration(proxyBeanMethods = false)
  @EnableTransactionManagement
  @EnableJpaRepositories(considerNestedRepositories = true)
  static class Base {
    @Bean(destroyMethod = "close")
    HikariDataSource source() {
      HikariConfig config = new HikariConfig();
      config.setJdbcUrl(Acts.url());
      config.setUsername(Acts.login().getProperty("user"));
      config.setPassword(Acts.login().getProperty("password"));
      config.setMaximumPoolSize(1);
      // Else the pool pings when Hibernate has taken more than half a second to start.
      System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "60000");
      return new HikariDataSource(config);
    }

    @Bean
    LocalContainerEntityManagerFactoryBean entityManagerFactory(DataSource source) {
      LocalContainerEntityManagerFactoryBean factory = new LocalContainerEntityManagerFactoryBean();
      factory.setDataSource(source);
      factory.setPackagesToScan("onetrip");
      factory.setJpaVendorAdapter(new HibernateJpaVendorAdapter());
      factory.setJpaProperties(properties());
      return factory;
    }

    @Bean
    PlatformTransactionManager transactionManager(EntityManagerFactory factory) {
      return new JpaTransactionManager(factory);
    }

    Properties properties() {
      return new Properties();
    }
  }

  @Configuration(proxyBeanMethods = false)
  static class Batching extends Base {
    @Override
    Properties properties() {
      Properties properties = new Properties();
      properties.put("hibernate.jdbc.batch_size", "50");
      properties.put("hibernate.order_inserts", "true");
      properties.put("hibernate.order_updates", "true");
      return properties;
    }
  }

  private static Act started(Class<?> configuration, Consumer<Tables> work) {
    return () -> {
      try (var context = new AnnotationConfigApplicationContext(configuration)) {
        work.accept(context::getBean);
      }
    };
  }

  private static Act inTransaction(Consumer<Tables> work) {
    return inTransaction(Base.class, work);
  }

  private static Act inTransaction(Class<?> configuration, Consumer<Tables> work) {
    return started(configuration, tables ->
        new TransactionTemplate(tables.of(PlatformTransactionManager.class))
            .executeWithoutResult(status -> work.accept(tables)));
  }

  private static List<Integer> ids(int count) {
    return ACCOUNT_IDS.subList(0, count);
  }

  private static void expectBooks(List<Author> authors) {
    expect(authors.size(), AUTHOR_COUNT);
    authors.forEach(author -> expect(author.books.size(), BOOKS_PER_AUTHOR));
  }

  private static void insertEach(Tables tables) {
    messages(FEW).forEach(text -> tables.of(Logs.class).save(new Log(text)));
  }

  /** Keys from a sequence: rows with an identity column are never sent as a batch. */
  private static void insertAll(Tables tables) {
    tables.of(Events.class).saveAll(messages(FEW).stream().map(Event::new).toList());
  }

  private static void addOneToEach(Tables tables) {
    for (Account account : tables.of(Accounts.class).findAllByOrderById(Limit.of(FEW))) {
      account.balance += 1;
    }
  }

  private static void repeat(java.util.function.Supplier<Author> read) {
    for (int i = 0; i < 10; i++) {
      expect(read.get().id, 140);
    }
  }
}
