package onetrip;

import static onetrip.Acts.ACCOUNT_IDS;
import static onetrip.Acts.FILE_CONTENT;
import static onetrip.Acts.FILE_IDS;
import static onetrip.Acts.FILE_PORTION;
import static onetrip.Acts.PAGE_AUTHORS;
import static onetrip.Acts.WRITE_ROWS;
import static onetrip.Acts.expect;
import static onetrip.Acts.messages;
import static onetrip.Acts.unseen;
import static onetrip.HibernateActs.autoCommit;
import static onetrip.HibernateActs.inTransaction;
import static onetrip.HibernateActs.started;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.sql.SQLException;
import java.util.Map;
import java.util.stream.IntStream;
import onetrip.Acts.Act;
import onetrip.Entities.Account;
import onetrip.Entities.Event;
import onetrip.Entities.FileRow;
import onetrip.Entities.Tag;
import onetrip.Entities.Ticket;
import org.hibernate.Session;
import org.hibernate.SessionFactory;

/** Findings from OT009 on, shown with Hibernate. */
final class HibernatePatterns {
  private HibernatePatterns() {}

  static void addTo(Map<String, Act> acts) {
    acts.put("bad_OT009", inTransaction(HibernatePatterns::findEach));
    acts.put("fixed_OT009", inTransaction(HibernatePatterns::findAll));
    acts.put("bad_OT010", inTransaction(HibernatePatterns::readByPortions));
    acts.put("fixed_OT010", inTransaction(HibernatePatterns::readWhole));
    acts.put("bad_OT012", inTransaction(HibernatePatterns::pagesByThree));
    acts.put("fixed_OT012", inTransaction(HibernatePatterns::pagesByOne));
    acts.put("bad_OT013", inTransaction(HibernatePatterns::findThenUpdate));
    acts.put("fixed_OT013", inTransaction(HibernatePatterns::updateEach));
    // allocationSize = 1 asks for each identifier; 50 asks once for fifty.
    acts.put("bad_OT014", inTransaction(session ->
        messages(WRITE_ROWS).forEach(text -> session.persist(new Ticket(text)))));
    acts.put("fixed_OT014", inTransaction(session ->
        messages(WRITE_ROWS).forEach(text -> session.persist(new Event(text)))));
    acts.put("bad_OT015", inTransaction(HibernatePatterns::lookUpThenInsert));
    acts.put("fixed_OT015", inTransaction(HibernatePatterns::insertUnlessThere));
    acts.put("bad_OT016", started(HibernatePatterns::readThenRollBack));
    acts.put("fixed_OT016", started(autoCommit(), factory -> tenTimes(() ->
        factory.inSession(HibernatePatterns::twoReads))));
  }

  private static void tenTimes(Runnable work) {
    IntStream.range(0, 10).forEach(i -> work.run());
  }

  private static void findEach(Session session) {
    for (int id : ACCOUNT_IDS.subList(0, 12)) {
      expect(session.find(Account.class, id).id, id);
    }
  }

  private static void findAll(Session session) {
    expect(session.byMultipleIds(Account.class)
        .multiLoad(ACCOUNT_IDS.subList(0, 12)).size(), 12);
  }

  /** The content is not in the row: each portion is fetched from the large object. */
  private static void readByPortions(Session session) {
    for (int id : FILE_IDS) {
      FileRow file = session.find(FileRow.class, id);
      byte[] read = new byte[FILE_CONTENT.length];
      try (InputStream stream = file.content.getBinaryStream()) {
        for (int from = 0; from < read.length; from += FILE_PORTION) {
          stream.readNBytes(read, from, FILE_PORTION);
        }
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      } catch (SQLException error) {
        throw new IllegalStateException(error);
      }
      expect(new String(read), new String(FILE_CONTENT));
    }
  }

  private static void readWhole(Session session) {
    for (int id : FILE_IDS) {
      byte[] read = session
          .createNativeQuery("SELECT lo_get(content) FROM files WHERE id = :id", byte[].class)
          .setParameter("id", id).getSingleResult();
      expect(read.length, FILE_CONTENT.length);
    }
  }

  private static void pagesByThree(Session session) {
    for (int author : PAGE_AUTHORS) {
      one(session, "select name from Author where id = :author", author);
      one(session, "select count(*) from Author a join a.books where a.id = :author", author);
      one(session, "select max(b.price) from Author a join a.books b where a.id = :author", author);
    }
  }

  private static void pagesByOne(Session session) {
    for (int author : PAGE_AUTHORS) {
      one(session, "select a.name, count(b), max(b.price) from Author a join a.books b"
          + " where a.id = :author group by a.name", author);
    }
  }

  private static void one(Session session, String query, int author) {
    session.createQuery(query, Object.class).setParameter("author", author).getSingleResult();
  }

  private static void findThenUpdate(Session session) {
    for (int id : ACCOUNT_IDS) {
      session.find(Account.class, id).balance += 1;
      session.flush();
    }
  }

  private static void updateEach(Session session) {
    for (int id : ACCOUNT_IDS) {
      int updated = session
          .createMutationQuery("update Account set balance = balance + 1 where id = :id")
          .setParameter("id", id).executeUpdate();
      expect(updated, 1);
    }
  }

  private static void lookUpThenInsert(Session session) {
    for (String name : unseen()) {
      Tag known = session.createQuery("from Tag where name = :name", Tag.class)
          .setParameter("name", name).getSingleResultOrNull();
      if (known == null) {
        session.persist(new Tag(name));
      }
    }
  }

  private static void insertUnlessThere(Session session) {
    for (String name : unseen()) {
      session.createMutationQuery("insert into Tag (name) values (:name) on conflict do nothing")
          .setParameter("name", name).executeUpdate();
    }
  }

  /** Nothing was written, so the program sees nothing to commit. */
  private static void readThenRollBack(SessionFactory factory) {
    tenTimes(() -> factory.inSession(session -> {
      session.beginTransaction();
      twoReads(session);
      session.getTransaction().rollback();
    }));
  }

  private static void twoReads(Session session) {
    session.createQuery("select count(*) from Author", Long.class).getSingleResult();
    session.createQuery("select max(price) from Book", Object.class).getSingleResult();
  }
}
