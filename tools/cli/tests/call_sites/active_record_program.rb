require 'active_record'

ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: ENV['PGDATABASE'], pool: 2)

class Author < ActiveRecord::Base
  self.table_name = 'author'
  has_many :books
end

class Book < ActiveRecord::Base
  self.table_name = 'book'
  belongs_to :author
end

class Note < ActiveRecord::Base
  self.table_name = 'note'
end

def titles(author)
  author.books.map(&:title) # OT001
end

Author.order(:id).each { |author| titles(author) }
Note.transaction do
  20.times do |note|
    Note.create!(body: "note #{note}") # OT002
  end
end
