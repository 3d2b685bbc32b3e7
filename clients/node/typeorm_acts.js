// Acts of TypeORM, over node-postgres.
import assert from 'node:assert/strict'
import { DataSource, EntitySchema, In } from 'typeorm'
import * as shared from './mappers.js'

const { ACCOUNT_IDS, BOOKS_PER_AUTHOR, FEW, FEW_IDS, server } = shared

const id = { type: 'int', primary: true }
const serial = { type: 'bigint', primary: true, generated: 'increment' }
const text = { type: 'text' }

const Author = new EntitySchema({
  name: 'Author',
  tableName: 'authors',
  columns: { id, name: text },
  relations: { books: { type: 'one-to-many', target: 'Book', inverseSide: 'author' } },
})
const Book = new EntitySchema({
  name: 'Book',
  tableName: 'books',
  columns: { id, title: text, price: { type: 'numeric' } },
  relations: { author: { type: 'many-to-one', target: 'Author', joinColumn: { name: 'author_id' }, inverseSide: 'books' } },
})
const Log = new EntitySchema({ name: 'Log', tableName: 'log', columns: { id: serial, message: text } })
const Account = new EntitySchema({ name: 'Account', tableName: 'accounts', columns: { id, balance: { type: 'int' } } })
const Tag = new EntitySchema({ name: 'Tag', tableName: 'tags', columns: { id: serial, name: { type: 'text', unique: true } } })

const source = new DataSource({
  ...server,
  username: server.user,
  type: 'postgres',
  entities: [Author, Book, Log, Account, Tag],
  poolSize: 1,
})

const connected = (work) => async () => {
  await source.initialize()
  await work(source.manager)
}
const inTransaction = (work) => connected(() => source.transaction(work))

// Nothing is left of it, so that other acts find the rows that they know.
const rolledBack = (work) =>
  connected(async () => {
    const undo = new Error('undo')
    const undone = source.transaction(async (manager) => {
      await work(manager)
      throw undo
    })
    await assert.rejects(undone, undo)
  })

// save() writes nothing where nothing differs.
const anyBalance = () => Math.floor(Math.random() * 1_000_000)

const newAccounts = () => FEW_IDS.map((_, number) => ({ id: 900_000 + 7 * number, balance: 1 }))

const insertEach = async (manager) => {
  for (const row of shared.logRows()) await manager.insert(Log, row)
}

const insertAll = (manager) => manager.insert(Log, shared.logRows())

const repeat = (count) => (manager) =>
  shared.times(count, async () => {
    assert.equal((await manager.findOneBy(Author, { id: 140 })).name, 'author 140')
  })

const acts = {
  bad_OT001: connected(async (manager) => {
    for (const author of await manager.find(Author, { order: { id: 'ASC' } })) {
      const books = await manager.findBy(Book, { author: { id: author.id } })
      assert.equal(books.length, BOOKS_PER_AUTHOR)
    }
  }),
  fixed_OT001: connected(async (manager) => {
    shared.expectBooks(await manager.find(Author, { relations: { books: true }, order: { id: 'ASC' } }))
  }),
  fixed_OT001_join: connected(async (manager) => {
    const query = manager.createQueryBuilder(Author, 'author').leftJoinAndSelect('author.books', 'book')
    shared.expectBooks(await query.getMany())
  }),
  bad_OT002: inTransaction(insertEach),
  fixed_OT002: inTransaction(insertAll),
  fixed_OT002_save: inTransaction((manager) => manager.save(Log, shared.logRows(), { chunk: 1000 })),
  bad_OT002_update: inTransaction(async (manager) => {
    for (const account of await manager.find(Account, { order: { id: 'ASC' }, take: FEW })) {
      await manager.update(Account, { id: account.id }, { balance: account.balance + 1 })
    }
  }),
  fixed_OT002_update: inTransaction((manager) => manager.increment(Account, { id: In(FEW_IDS) }, 'balance', 1)),
  bad_OT003: connected(insertEach),
  bad_OT003_save: connected(async (manager) => {
    for (const row of shared.logRows()) await manager.save(Log, row)
  }),
  fixed_OT003: inTransaction(insertAll),
  bad_OT005: inTransaction(repeat(10)),
  fixed_OT005: inTransaction(repeat(1)),
  bad_OT009: connected(async (manager) => {
    for (const number of ACCOUNT_IDS) assert.ok(await manager.findOneBy(Account, { id: number }))
  }),
  fixed_OT009: connected(async (manager) => {
    const accounts = await manager.findBy(Account, { id: In(ACCOUNT_IDS) })
    assert.equal(accounts.length, ACCOUNT_IDS.length)
  }),
  // save() reads the row once more, to know what has changed.
  bad_OT013: inTransaction(async (manager) => {
    for (const number of FEW_IDS) {
      const account = await manager.findOneBy(Account, { id: number })
      account.balance += 1
      await manager.save(Account, account)
    }
  }),
  // Each save() is a SELECT, and a transaction of its own around the UPDATE.
  bad_OT013_save: connected(async (manager) => {
    for (const number of FEW_IDS) await manager.save(Account, { id: number, balance: anyBalance() })
  }),
  fixed_OT013_update: inTransaction(async (manager) => {
    for (const number of FEW_IDS) await manager.update(Account, { id: number }, { balance: anyBalance() })
  }),
  fixed_OT013: inTransaction(async (manager) => {
    for (const number of FEW_IDS) await manager.increment(Account, { id: number }, 'balance', 1)
  }),
  bad_OT015: inTransaction(async (manager) => {
    for (const row of shared.newTags()) {
      if ((await manager.findOneBy(Tag, row)) === null) await manager.insert(Tag, row)
    }
  }),
  // save() of a row with a key looks for it first.
  bad_OT015_save: rolledBack(async (manager) => {
    for (const row of newAccounts()) await manager.save(Account, row)
  }),
  fixed_OT015_insert: rolledBack(async (manager) => {
    await manager.insert(Account, newAccounts())
  }),
  fixed_OT015: inTransaction((manager) => manager.upsert(Tag, shared.newTags(), ['name'])),
  fixed_OT015_ignore: inTransaction(async (manager) => {
    await manager.createQueryBuilder().insert().into(Tag).values(shared.newTags()).orIgnore().execute()
  }),
}

await shared.main(acts, () => source.destroy())
