// Acts of MikroORM, over node-postgres.
import assert from 'node:assert/strict'
import { EntitySchema, LockMode, MikroORM, raw } from '@mikro-orm/postgresql'
import * as shared from './mappers.js'

const { ACCOUNT_IDS, BOOKS_PER_AUTHOR, FEW, FEW_IDS, server } = shared

const id = { type: 'integer', primary: true }
const serial = { type: 'bigint', primary: true, autoincrement: true }
const text = { type: 'text' }

const Author = new EntitySchema({
  name: 'Author',
  tableName: 'authors',
  properties: { id, name: text, books: { kind: '1:m', entity: 'Book', mappedBy: 'author' } },
})
const Book = new EntitySchema({
  name: 'Book',
  tableName: 'books',
  properties: { id, title: text, price: { type: 'decimal' }, author: { kind: 'm:1', entity: 'Author', fieldName: 'author_id' } },
})
const Log = new EntitySchema({ name: 'Log', tableName: 'log', properties: { id: serial, message: text } })
const Account = new EntitySchema({ name: 'Account', tableName: 'accounts', properties: { id, balance: { type: 'integer' } } })
const Tag = new EntitySchema({ name: 'Tag', tableName: 'tags', properties: { id: serial, name: { ...text, unique: true } } })

let orm

const connected = (work) => async () => {
  orm = await MikroORM.init({
    ...server,
    dbName: server.database,
    entities: [Author, Book, Log, Account, Tag],
    pool: { min: 0, max: 1 },
  })
  await work(orm.em.fork())
}
const inTransaction = (work) => connected((em) => em.transactional(work))

const insertEach = async (em) => {
  for (const row of shared.logRows()) {
    em.create(Log, row)
    await em.flush()
  }
}

const insertAll = async (em) => {
  em.persist(shared.logRows().map((row) => em.create(Log, row)))
  await em.flush()
}

const repeat = (condition) => (em) =>
  shared.times(10, async () => {
    assert.equal((await em.findOne(Author, condition)).name, 'author 140')
  })

const addOneToEach = (flushEach) => async (em) => {
  for (const account of await em.find(Account, {}, { orderBy: { id: 'asc' }, limit: FEW })) {
    account.balance += 1
    if (flushEach) await em.flush()
  }
  await em.flush()
}

const acts = {
  bad_OT001: connected(async (em) => {
    for (const author of await em.find(Author, {}, { orderBy: { id: 'asc' } })) {
      assert.equal((await author.books.loadItems()).length, BOOKS_PER_AUTHOR)
    }
  }),
  fixed_OT001: connected(async (em) => {
    shared.expectBooks(await em.find(Author, {}, { populate: ['books'] }))
  }),
  bad_OT002: inTransaction(insertEach),
  fixed_OT002: inTransaction(insertAll),
  fixed_OT002_many: inTransaction((em) => em.insertMany(Log, shared.logRows())),
  bad_OT002_update: inTransaction(addOneToEach(true)),
  fixed_OT002_update: inTransaction(addOneToEach(false)),
  bad_OT003: connected(insertEach),
  fixed_OT003: connected(insertAll),
  bad_OT005: inTransaction(repeat({ name: 'author 140' })),
  fixed_OT005: inTransaction(repeat(140)),
  bad_OT009: connected(async (em) => {
    for (const number of ACCOUNT_IDS) assert.ok(await em.findOne(Account, number))
  }),
  fixed_OT009: connected(async (em) => {
    assert.equal((await em.find(Account, { id: ACCOUNT_IDS })).length, ACCOUNT_IDS.length)
  }),
  bad_OT013: inTransaction(async (em) => {
    for (const number of FEW_IDS) {
      const account = await em.findOne(Account, number, { lockMode: LockMode.PESSIMISTIC_WRITE })
      account.balance += 1
      await em.flush()
    }
  }),
  fixed_OT013: inTransaction(async (em) => {
    for (const number of FEW_IDS) {
      assert.equal(await em.nativeUpdate(Account, { id: number }, { balance: raw('balance + 1') }), 1)
    }
  }),
  bad_OT015: inTransaction(async (em) => {
    for (const row of shared.newTags()) {
      if ((await em.findOne(Tag, row)) === null) {
        em.create(Tag, row)
        await em.flush()
      }
    }
  }),
  fixed_OT015: inTransaction((em) => em.upsertMany(Tag, shared.newTags())),
}

await shared.main(acts, () => orm.close())
