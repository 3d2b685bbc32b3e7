# frozen_string_literal: true

# Tells `onetrip run` which line of a Ruby program sends each statement. RUBYOPT makes Ruby require this file first. The lines,
# and what they mean, are those of onetrip_call_sites.py. The calls of PG::Connection (the gem `pg`) are wrapped, so
# Active Record and Sequel are covered; what goes between client and database stays the same. Whatever fails here ends the
# telling, not the program. Nothing is required but what is part of Ruby: a gem that were loaded here could not be loaded in
# the version that the program's Gemfile names. A Ruby that is too old has to be able to read this file, too: it has no
# syntax that is newer than Ruby 2.3.

begin
  require 'rbconfig'
  require 'socket'
rescue LoadError
  return
end

module OnetripCallSites
  FRAMES_MAX = 5
  FRAME_BYTES_MAX = 200
  DEPTH_MAX = 200
  # What is not yet told goes out after so many lines, or so long after the last time.
  LINES_MAX = 64
  QUIET_NS = 50_000_000
  # A socket that takes nothing for so long is given up.
  PATIENCE_SECONDS = 1

  # The socket, and what waits to be told.
  class Teller
    def initialize(path)
      @path = path
      @mutex = Mutex.new
      start
    end

    # A connection's number; the same after a fork, since the child tells of it as of its own.
    def next_number
      @mutex.synchronize { @numbers = (@numbers || -1) + 1 }
    end

    def tell(kind, connection, begun, ended, site)
      return if site.nil? && kind != 'open'

      @mutex.synchronize do
        start if @process != Process.pid
        next if @failed

        number = site ? @sites[site] : '-'
        if number.nil?
          number = @sites[site] = @sites.size
          @lines << "site #{number} #{site}\n"
        end
        @lines << "#{kind} #{connection} #{begun} #{ended} #{number}\n"
        if @lines.size >= LINES_MAX || ended - @told_at > QUIET_NS
          @told_at = ended
          flush
        end
      end
    rescue ThreadError
      nil # a signal's handler may not lock: what it sends has no line
    rescue StandardError
      @failed = true
    end

    def finish
      @mutex.synchronize { flush unless @failed || @process != Process.pid }
    rescue StandardError
      @failed = true
    end

    private

    # Begins anew, as a forked child has to.
    def start
      @process = Process.pid
      @lines = []
      @sites = {}
      @told_at = 0
      @failed = false
      @socket = nil
    end

    def flush
      return if @lines.empty?

      rest = @lines.join
      @lines = []
      @socket ||= UNIXSocket.new(@path)
      until rest.empty?
        written = @socket.write_nonblock(rest, exception: false)
        if written.is_a?(Integer)
          rest = rest.byteslice(written, rest.bytesize)
        elsif !IO.select(nil, [@socket], nil, PATIENCE_SECONDS)
          raise IOError, 'nobody reads'
        end
      end
    end
  end

  # The lines of the program that lead to a call.
  module Frames
    # Between a program and its driver. Their frames are never named.
    BETWEEN = %w[
      activemodel activerecord activesupport data_mapper hanami-model makara octopus pg rom rom-sql ruby-pg sequel
      sequel_pg
    ].freeze
    LIBRARY = %w[rubylibdir rubyarchdir vendordir sitedir].map { |name| RbConfig::CONFIG[name] }
                                                          .compact.map { |path| "#{path}/" }.freeze
    ROOT = begin
      "#{Dir.pwd}/"
    rescue SystemCallError
      '' # the directory is gone
    end

    @origins = {}

    class << self
      # The program's frames as JSON, the innermost first: its own where there are any, else those of the gems it uses.
      def site
        own = []
        installed = []
        each_frame do |frame|
          path = frame.absolute_path || frame.path
          origin = path ? (@origins[path] ||= origin_of(path)) : :never
          if origin == :own
            # Methods of C, and blocks that they call, stand at the line of who called them.
            own.pop if own.last&.lineno == frame.lineno && own.last.path == frame.path
            own << frame
            break if own.size == FRAMES_MAX
          elsif origin == :installed && installed.size < FRAMES_MAX
            installed << frame
          end
        end
        frames = own.empty? ? installed : own
        "[#{frames.map { |frame| quoted(shown(frame)) }.join(', ')}]" unless frames.empty?
      end

      private

      if Thread.respond_to?(:each_caller_location)
        def each_frame(&block)
          Thread.each_caller_location(&block)
        end
      else
        def each_frame(&block)
          caller_locations(1, DEPTH_MAX).each(&block)
        end
      end

      def origin_of(path)
        # What is made of text while the program runs names no file of its own.
        return :never if path == __FILE__ || path.start_with?('<internal:', '(eval')

        # "pg-1.5.9-aarch64-linux", "activerecord-1f3a5c7d9e0b"
        gem = path[%r{/gems/([^/]+?)-(?:\d|\h{7,}/)}, 1]
        return BETWEEN.include?(gem) ? :never : :installed if gem
        return :never if path.start_with?(*LIBRARY)

        :own
      end

      def shown(frame)
        path = frame.absolute_path || frame.path
        path = path.delete_prefix(ROOT)
        label = frame.base_label
        name = label.nil? || label.start_with?('<') ? '' : " in #{label}"
        text = "#{path}:#{frame.lineno}#{name}"
        text.bytesize > FRAME_BYTES_MAX ? text.byteslice(-FRAME_BYTES_MAX, FRAME_BYTES_MAX) : text
      end

      def quoted(text)
        text = text.encode('UTF-8', invalid: :replace, undef: :replace).scrub('?')
        "\"#{text.gsub(/["\\]/) { |mark| "\\#{mark}" }.gsub(/[\x00-\x1f]/, '?')}\""
      end
    end
  end

  # Wraps what waits for the database, and what only sends.
  module Driver
    WAITS = %i[
      exec query exec_params prepare exec_prepared describe_portal describe_prepared get_result get_last_result
      get_copy_data reset set_client_encoding client_encoding= encrypt_password discard_results put_copy_data put_copy_end
      flush block close finish consume_input
      async_query lo_close lo_creat lo_create lo_export lo_import lo_lseek lo_open lo_read lo_seek lo_tell lo_truncate
      lo_unlink lo_write loclose locreat locreate loexport loimport lolseek loopen loread loseek lotell lotruncate lounlink
      lowrite
    ].freeze
    # What these have sent may arrive after they have returned.
    SENDS = %i[
      send_query send_query_params send_query_prepared send_prepare send_describe_portal send_describe_prepared
      send_flush_request pipeline_sync
    ].freeze
    OPENS = %i[new open connect connect_start setdb setdblogin].freeze

    class << self
      def wrap(connection)
        opening = connection.singleton_class
        with_ways(OPENS).each { |name| wrap_opening(opening, name) if opening.method_defined?(name, false) }
        own = connection.instance_methods(false)
        (with_ways(WAITS) & own).each { |name| wrap_call(connection, name, false) }
        (with_ways(SENDS) & own).each { |name| wrap_call(connection, name, true) }
      end

      private

      # `exec` is `async_exec` or `sync_exec`, as the program likes.
      def with_ways(names)
        names.flat_map { |name| [name, :"async_#{name}", :"sync_#{name}"] }.uniq
      end

      # Wrapped in place, not by `prepend`: a tool that renames a method and puts its own in its place would never return.
      def wrap_call(connection, name, goes_on)
        original = connection.instance_method(name)
        connection.class_eval do
          define_method(name) do |*arguments, &block|
            begun, site = OnetripCallSites.begin_call(self)
            begin
              original.bind_call(self, *arguments, &block)
            ensure
              OnetripCallSites.end_call(self, begun, site, goes_on)
            end
          end
          ruby2_keywords(name)
        end
      end

      def wrap_opening(opening, name)
        original = opening.instance_method(name)
        opening.class_eval do
          define_method(name) do |*arguments, &block|
            OnetripCallSites.open(block) { |then_do| original.bind_call(self, *arguments, &then_do) }
          end
          ruby2_keywords(name)
        end
      end
    end
  end

  class << self
    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end

    # A call that only sends lasts until the next one begins.
    def begin_call(connection)
      quietly do
        begun = now
        sent = connection.instance_variable_get(:@onetrip_sent)
        if sent
          connection.instance_variable_set(:@onetrip_sent, nil)
          @teller.tell('call', connection.instance_variable_get(:@onetrip_number), sent[0], begun, sent[1])
        end
        [begun, Frames.site]
      end
    end

    def end_call(connection, begun, site, goes_on)
      quietly do
        number = connection.instance_variable_get(:@onetrip_number)
        if number.nil? || begun.nil?
          nil
        elsif goes_on
          connection.instance_variable_set(:@onetrip_sent, [begun, site])
        else
          @teller.tell('call', number, begun, now, site)
        end
      end
    end

    # Opens a connection by the block, which takes what is to be done with the connection, if anything is.
    def open(then_do)
      return yield(then_do) if Thread.current[:onetrip_opens]

      Thread.current[:onetrip_opens] = true
      begun = now
      site = quietly { Frames.site }
      if then_do.nil?
        begin
          connection = yield(nil)
        ensure
          Thread.current[:onetrip_opens] = nil
        end
        opened(connection, begun, site)
        return connection
      end
      begin
        yield(lambda do |made|
          Thread.current[:onetrip_opens] = nil
          opened(made, begun, site)
          then_do.call(made)
        end)
      ensure
        Thread.current[:onetrip_opens] = nil
      end
    end

    # Wraps the driver when it is loaded: its class is made first, and is complete at the end of `class PG::Connection`.
    def install(path)
      @teller = Teller.new(path)
      at_exit { @teller.finish }
      Object.singleton_class.class_eval do
        def inherited(made)
          super
          OnetripCallSites.made(made) if Module.instance_method(:name).bind_call(made) == 'PG::Connection'
        end
        private :inherited
      end
    end

    def made(connection)
      Object.singleton_class.send(:remove_method, :inherited)
      trace = TracePoint.new(:end) do |point|
        if point.self.equal?(connection)
          trace.disable
          begin
            Driver.wrap(connection)
          rescue StandardError
            nil # another version than is known here
          end
        end
      end
      trace.enable
    rescue StandardError
      nil
    end

    private

    # What fails here is no error of the program. What another thread raises in this one, as `Timeout` does, waits until this
    # is over: it is for the program.
    def quietly
      Thread.handle_interrupt(Exception => :never) do
        begin
          yield
        rescue StandardError
          nil
        end
      end
    end

    def opened(connection, begun, site)
      quietly do
        number = @teller.next_number
        connection.instance_variable_set(:@onetrip_number, number)
        @teller.tell('open', number, begun, now, site)
      end
    end
  end
end

begin
  path = ENV['ONETRIP_CALLS']
  OnetripCallSites.install(path) if path && !path.empty? && RUBY_VERSION >= '2.7'
rescue StandardError
  nil # a program runs as without it, whatever is wrong here
end
