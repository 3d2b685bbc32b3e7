# frozen_string_literal: true

# What the acts of Ruby share: `ruby PROGRAM.rb ACT` runs one, `--list` names them.

require 'securerandom'

# What the seeded tables hold (clients/mysql/schema.sql).
module Seeded
  AUTHOR_COUNT = 12
  BOOKS_PER_AUTHOR = 3
  LOOP_COUNT = 10
  TABLE_ROWS = 200
  ACCOUNT_IDS = [
    311, 324, 338, 347, 359, 366, 372, 385, 394, 408,
    419, 423, 437, 446, 458, 469, 471, 483, 495, 502
  ].freeze
  PAGE_AUTHORS = [112, 140, 175, 203].freeze
  # Rows that the acts of mappers write one by one: enough for each finding.
  FEW = 8
end

# The acts by name.
module Acts
  REGISTERED = {}

  # A wrong answer is not a cheap answer.
  class WrongAnswer < StandardError
  end

  module_function

  def act(name, &work)
    raise ArgumentError, "two acts are called #{name}" if REGISTERED.key?(name)

    REGISTERED[name] = work
  end

  # Fails the act.
  def expect(actual, wanted)
    raise WrongAnswer, "got #{actual.inspect}, wanted #{wanted.inspect}" unless actual == wanted
  end

  def messages(count)
    (1..count).map { |number| "message #{number}" }
  end

  # Names that no row has.
  def unseen(count)
    Array.new(count) { "unseen #{SecureRandom.uuid}" }
  end

  # Runs the act that the command line names.
  def main(arguments)
    if arguments == ['--list']
      puts REGISTERED.keys
    elsif arguments.size != 1 || !REGISTERED.key?(arguments.first.to_sym)
      warn "usage: #{$PROGRAM_NAME} #{REGISTERED.keys.join('|')}"
      exit 2
    else
      REGISTERED[arguments.first.to_sym].call
    end
  end
end
