require 'pg'

def titles(connection, author)
  connection.exec_params('SELECT title FROM book WHERE author_id = $1', [author]).values # OT001
end

def loops(connection)
  connection.exec('SELECT id FROM author ORDER BY id').each { |row| titles(connection, row['id']) }
  connection.transaction do
    connection.exec('DECLARE pieces CURSOR FOR SELECT id FROM book ORDER BY id')
    until connection.exec_params('FETCH 10 FROM pieces', []).ntuples.zero? # OT004
    end
  end
  connection.transaction do
    20.times do |note|
      connection.exec_params('INSERT INTO note (body) VALUES ($1)', ["note #{note}"]) # OT002
    end
  end
end

# Calls that send and read by halves, and what a program may do with the driver.
def other_calls(connection)
  connection.send_query_params('SELECT $1::int', [1])
  raise 'another value' unless connection.get_result.getvalue(0, 0) == '1'

  connection.discard_results
  connection.copy_data('COPY (SELECT 1) TO STDOUT') { nil while connection.get_copy_data }
  connection.pipeline_sync if connection.pipeline_status != PG::PQ_PIPELINE_OFF
  begin
    connection.query('SELECT no_such_column')
    raise 'no error'
  rescue PG::UndefinedColumn
    nil
  end
end

# As tools do that measure statements.
class PG::Connection
  alias query_unmeasured query
  def query(*given, &block)
    query_unmeasured(*given, &block)
  end
end

raise 'another result' unless PG.connect(application_name: 'shop') { |it| it.exec('SELECT 7').getvalue(0, 0) } == '7'

connection = PG::Connection.new
loops(connection)
other_calls(connection)
connection.finish
6.times do
  short = PG.connect # OT008
  short.exec('SELECT 1')
  short.close
end
Process.wait(fork { PG.connect { |it| loops(it) } })
