# frozen_string_literal: true

# Runs one act of ActiveRecord over the gem mysql2: `ruby active_record_acts.rb ACT`, or `--list`.
#
# The connection comes from the MYSQL_* environment. Nothing is printed on success. Each act is a program of its own, so
# each model that it uses asks for its table's columns first.

require 'active_record'
require_relative 'seeded'

include Acts
include Seeded

class Author < ActiveRecord::Base
  has_many :books
end

class Book < ActiveRecord::Base
  belongs_to :author
end

class Item < ActiveRecord::Base
  self.table_name = 't'
end

class Log < ActiveRecord::Base
  self.table_name = 'log'
end

class Account < ActiveRecord::Base
end

class Tag < ActiveRecord::Base
end

class Link < ActiveRecord::Base
end

# Says where the database is; the connection opens when it is first used.
def configure(**settings)
  ActiveRecord::Base.establish_connection(
    adapter: 'mysql2',
    encoding: 'utf8mb4',
    pool: 5,
    host: ENV.fetch('MYSQL_HOST'),
    port: ENV.fetch('MYSQL_TCP_PORT').to_i,
    username: ENV.fetch('MYSQL_USER'),
    password: ENV.fetch('MYSQL_PWD'),
    database: ENV.fetch('MYSQL_DATABASE'),
    **settings
  )
end

# An act with a connection pool of its own.
def connected(name, **settings)
  act(name) do
    configure(**settings)
    yield
    ActiveRecord::Base.connection_pool.disconnect!
  end
end

def in_transaction(name, &work)
  connected(name) { ActiveRecord::Base.transaction(&work) }
end

def connection
  ActiveRecord::Base.connection
end

def select(id)
  expect(Item.find(id).v, "value #{id}")
end

# Asks for the ids step, 2 * step, ... one by one.
def selects(count, step = 1)
  1.upto(count) { |number| select(number * step) }
end

def few_ids
  ACCOUNT_IDS.first(FEW)
end

def expect_books(authors)
  authors.each { |author| expect(author.books.to_a.size, BOOKS_PER_AUTHOR) }
end

def all_books(authors)
  found = authors.order(:id).to_a
  expect(found.size, AUTHOR_COUNT)
  expect_books(found)
end

def log_rows(count)
  messages(count).map { |text| { message: text } }
end

def tag_rows(count)
  unseen(count).map { |name| { name: name } }
end

def create_each
  messages(FEW).each { |text| Log.create!(message: text) }
end

def repeat(times)
  times.times { expect(Author.find(140).name, 'author 140') }
end

# What a request does at its end: its connection goes back to the pool.
def end_request
  ActiveRecord::Base.clear_active_connections!
end

def count_authors
  expect(Author.count, AUTHOR_COUNT)
end

def two_reads
  count_authors
  expect(Book.maximum(:price).positive?, true)
end

def isolation
  connection.execute('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
end

# ---- what the stack spends

connected(:connect) { connection }
connected(:connect_variables, variables: { time_zone: '+00:00' }) { connection }
connected(:first_use) { expect(Item.column_names, %w[id v]) }
connected(:first_use_again) do
  2.times do
    expect(Item.column_names, %w[id v])
    Item.reset_column_information
  end
end
[1, 2, 6].each { |count| connected(:"select_#{count}") { selects(count) } }
[1, 2].each { |count| connected(:"prepared_#{count}", prepared_statements: true) { selects(count) } }
[1, 2].each { |count| in_transaction(:"txn_#{count}") { selects(count) } }
in_transaction(:txn_empty) { nil }
in_transaction(:nested_txn) do
  ActiveRecord::Base.transaction(requires_new: true) { selects(1) }
end
connected(:ping_3) { 3.times { expect(connection.active?, true) } }
connected(:pool_checkin) do
  2.times do |number|
    select(number + 1)
    end_request
  end
end
connected(:query_cache_3) { connection.cache { 3.times { select(1) } } }
connected(:create_1) { expect(Log.create!(message: 'message 1').id.positive?, true) }
connected(:update_obj) do
  account = Account.find(311)
  account.balance += 1
  account.save!
end
connected(:save_unchanged) { expect(Account.find(311).save!, true) }
connected(:update_columns_1) do
  account = Account.find(311)
  expect(account.update_columns(balance: account.balance + 1), true)
end
connected(:with_lock) do
  Account.find(311).with_lock { |_| nil }
end
in_transaction(:lock_1) { expect(Account.lock.find(311).id, 311) }
connected(:insert_all_3) { Log.insert_all!(log_rows(3)) }
connected(:upsert_all_3) { Tag.upsert_all(tag_rows(3)) }
connected(:find_or_create_by_miss) do
  expect(Tag.find_or_create_by!(name: unseen(1).first).previously_new_record?, true)
end
connected(:create_or_find_by_miss) do
  expect(Tag.create_or_find_by!(name: unseen(1).first).previously_new_record?, true)
end
connected(:find_each_50) { expect(Item.find_each(batch_size: 50).count, TABLE_ROWS) }
connected(:n_plus_one_10) { expect_books(Author.order(:id).limit(LOOP_COUNT)) }
connected(:includes_10) { expect_books(Author.includes(:books).order(:id).limit(LOOP_COUNT)) }
connected(:eager_load_12) { all_books(Author.eager_load(:books)) }

# ---- findings: what a program does badly, and the same done well

connected(:bad_OT001) { all_books(Author) }
connected(:fixed_OT001) { all_books(Author.includes(:books)) }
connected(:fixed_OT001_joined) { all_books(Author.eager_load(:books)) }
in_transaction(:bad_OT002) { create_each }
in_transaction(:fixed_OT002) { Log.insert_all!(log_rows(FEW)) }
in_transaction(:bad_OT002_update) do
  Account.where(id: few_ids).each do |account|
    account.balance += 1
    account.save!
  end
end
in_transaction(:fixed_OT002_update) do
  expect(Account.where(id: few_ids).update_all('balance = balance + 1'), FEW)
end
connected(:bad_OT003) { create_each }
connected(:fixed_OT003) { Log.insert_all!(log_rows(FEW)) }
in_transaction(:bad_OT005) { repeat(10) }
in_transaction(:fixed_OT005) { repeat(1) }
# What Rails does for each request.
connected(:fixed_OT005_cached) { connection.cache { repeat(10) } }
connected(:bad_OT006) do
  1.upto(10) { |number| ActiveRecord::Base.transaction { select(number * 7) } }
end
connected(:fixed_OT006) { selects(10, 7) }
connected(:bad_OT008) do
  1.upto(10) do |number|
    select(number * 7)
    ActiveRecord::Base.connection_pool.disconnect!
  end
end
connected(:fixed_OT008) { selects(10, 7) }
connected(:bad_OT009) { ACCOUNT_IDS.first(12).each { |id| expect(Account.find(id).id, id) } }
connected(:fixed_OT009) { expect(Account.where(id: ACCOUNT_IDS.first(12)).to_a.size, 12) }
connected(:bad_OT011) do
  10.times do
    count_authors
    end_request
  end
end
connected(:fixed_OT011) { 10.times { count_authors } }
connected(:bad_OT011_set) do
  10.times do
    isolation
    count_authors
  end
end
connected(:fixed_OT011_set, variables: { tx_isolation: 'READ-COMMITTED' }) { 10.times { count_authors } }
connected(:bad_OT012) do
  PAGE_AUTHORS.each do |id|
    expect(Author.find(id).name, "author #{id}")
    expect(Book.where(author_id: id).count, BOOKS_PER_AUTHOR)
    expect(Book.where(author_id: id).maximum(:price).positive?, true)
  end
end
# One query: each author's row has what the others asked for.
connected(:fixed_OT012) do
  page = Author.left_joins(:books).group(:id, :name)
  PAGE_AUTHORS.each do |id|
    author = page.select('authors.*, count(books.id) AS books_count, max(price) AS price').find(id)
    expect([author.name, author.books_count], ["author #{id}", BOOKS_PER_AUTHOR])
  end
end
in_transaction(:bad_OT013) do
  few_ids.each do |id|
    account = Account.lock.find(id)
    account.balance += 1
    account.save!
  end
end
in_transaction(:fixed_OT013) do
  few_ids.each { |id| expect(Account.update_counters(id, balance: 1), 1) }
end
in_transaction(:bad_OT015) do
  unseen(FEW).each { |name| expect(Tag.find_or_create_by!(name: name).previously_new_record?, true) }
end
in_transaction(:fixed_OT015) { Tag.insert_all(tag_rows(FEW)) }
connected(:bad_OT016) do
  10.times do
    ActiveRecord::Base.transaction do
      two_reads
      raise ActiveRecord::Rollback
    end
  end
end
connected(:fixed_OT016) { 10.times { two_reads } }

# ---- traps: what looks avoidable and is not

# Each answer names the next question.
connected(:trap_chain) do
  number = 713
  10.times { number = Link.find(number).next }
  expect(number, 713)
end
# Too few to be a loop.
connected(:trap_two_of_each) do
  PAGE_AUTHORS.first(2).each { |id| expect(Book.where(author_id: id).to_a.size, BOOKS_PER_AUTHOR) }
end
# Each batch begins after the last row of the one before it.
connected(:trap_batches) { expect(Item.find_each(batch_size: 50).count, TABLE_ROWS) }
# Each model asks once for its table's columns.
connected(:trap_first_uses) do
  expect([Author, Book, Item, Log, Account, Tag, Link].sum { |model| model.column_names.size }, 16)
end

main(ARGV)
