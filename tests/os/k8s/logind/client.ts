/** A D-Bus client that does what the kubelet does, except that it receives no descriptor. */
import { type DbusMessage, readDbusMessage, writeDbusMessage } from '../../../../src/wire/dbus/message.ts'
import type { DbusValue } from '../../../../src/wire/dbus/values.ts'

/** One connection that has authenticated. */
export class BusClient {
  readonly signals: DbusMessage[] = []
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>
  #bytes = Buffer.alloc(0)
  #lines = ''
  #begun = false
  #serial = 0
  #onSignal = () => {}
  readonly #replies = new Map<number, (message: DbusMessage) => void>()
  #socket!: Bun.Socket

  private constructor(path: string, ready: (error?: Error) => void) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    Bun.connect({
      unix: path,
      socket: {
        open: (socket) => {
          this.#socket = socket
          socket.write('\0AUTH EXTERNAL 30\r\nNEGOTIATE_UNIX_FD\r\n')
        },
        data: (socket, bytes) => {
          if (this.#begun) return this.#receive(bytes)
          this.#lines += bytes.toString('latin1')
          if (!this.#lines.includes('AGREE_UNIX_FD\r\n')) return
          this.#begun = true
          socket.write('BEGIN\r\n')
          ready()
        },
        close: () => resolve(),
        error: () => resolve(),
      },
    }).catch(ready)
  }

  static async open(path: string): Promise<BusClient> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const client = new BusClient(path, (error) => (error ? reject(error) : resolve()))
    await Promise.race([promise, client.closed.then(() => Promise.reject(new Error('the server closed the connection')))])
    await client.bus('Hello')
    return client
  }

  bus(member: string, ...values: string[]): Promise<DbusMessage> {
    return this.call(
      { path: '/org/freedesktop/DBus', interface: 'org.freedesktop.DBus', destination: 'org.freedesktop.DBus', member },
      values,
    )
  }

  login1(member: string, values: string[], path = '/org/freedesktop/login1'): Promise<DbusMessage> {
    const name = member === 'Get' ? 'org.freedesktop.DBus.Properties' : 'org.freedesktop.login1.Manager'
    return this.call({ path, interface: name, destination: 'org.freedesktop.login1', member }, values)
  }

  /** The four calls of a kubelet that starts. */
  async startAsKubelet(): Promise<DbusMessage> {
    await this.login1('Get', ['org.freedesktop.login1.Manager', 'InhibitDelayMaxUSec'])
    const lock = await this.login1('Inhibit', ['shutdown', 'kubelet', 'ends pods', 'delay'])
    await this.bus(
      'AddMatch',
      "type='signal',interface='org.freedesktop.login1.Manager',member='PrepareForShutdown',path='/org/freedesktop/login1'",
    )
    return lock
  }

  call(header: { path: string; interface: string; destination: string; member: string }, values: string[]): Promise<DbusMessage> {
    const serial = ++this.#serial
    const body = values.map((value): DbusValue => ({ type: 's', value }))
    const { promise, resolve } = Promise.withResolvers<DbusMessage>()
    this.#replies.set(serial, resolve)
    this.#socket.write(writeDbusMessage({ type: 'call', serial, ...header, body }))
    return promise
  }

  write(bytes: string | Uint8Array): void {
    this.#socket.write(bytes)
  }

  /** Resolves with the values of the signals so far once there are as many. */
  async signalled(count: number): Promise<unknown[]> {
    while (this.signals.length < count)
      await new Promise<void>((resolve) => {
        this.#onSignal = resolve
      })
    return this.signals.map(({ body }) => body?.[0]?.value)
  }

  close(): void {
    this.#socket.terminate()
  }

  #receive(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    for (let read = readDbusMessage(this.#bytes); read; read = readDbusMessage(this.#bytes)) {
      this.#bytes = this.#bytes.subarray(read.length)
      const { message } = read
      if (message.type === 'signal') {
        this.signals.push(message)
        this.#onSignal()
      } else this.#replies.get(message.replySerial ?? 0)?.(message)
    }
  }
}
