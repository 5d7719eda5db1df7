/** A D-Bus server on a unix socket: authentication, names, subscriptions to signals. What it serves is passed in. */
import type { Logger } from '../../../cosi/log.ts'
import { DbusAuthentication } from '../../../wire/dbus/authentication.ts'
import { type MatchRule, matchesRule, parseMatchRule } from '../../../wire/dbus/match-rule.ts'
import { type DbusHeader, type DbusMessage, maxDbusMessage, readDbusMessage, writeDbusMessage } from '../../../wire/dbus/message.ts'
import type { DbusValue } from '../../../wire/dbus/values.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Kernel } from '../../kernel.ts'

/** A call that fails; the name is that of the D-Bus error. */
export class BusError extends Error {
  override name = 'BusError'
  constructor(
    readonly errorName: string,
    message: string,
  ) {
    super(message)
  }
}

/** The reply to a call. */
export interface BusReply {
  readonly body?: readonly DbusValue[]
  /** Descriptors that values of the type `h` index. */
  readonly descriptors?: readonly number[]
  /** Called once the reply was sent, or cannot be. */
  sent?(delivered: boolean): void
}

/** What a bus serves under its well-known name. */
export interface BusService {
  readonly name: string
  /** Answers a method call, or throws BusError. */
  call(message: DbusMessage): BusReply
}

/** The kernel's calls of a bus. */
export type BusKernel = Pick<Kernel['socket'], 'peerCredentials' | 'sendDescriptors'>

/** The most clients at once; the kubelet is one. */
const maxClients = 16
/** The most subscriptions of one client. */
const maxRules = 64
/** Milliseconds to authenticate. */
const authenticationTime = 10_000

const busName = 'org.freedesktop.DBus'

type Socket = Bun.Socket<Client | undefined> & { readonly fd: number }

/** A listening bus. */
export class Bus {
  readonly #guid = crypto.randomUUID().replaceAll('-', '')
  readonly #clients = new Set<Client>()
  #listener: Bun.UnixSocketListener<Client | undefined> | undefined
  #last = 0

  constructor(
    readonly service: BusService,
    readonly kernel: BusKernel,
    readonly log: Logger,
  ) {}

  /** Listens at a path, where nothing may be. Only processes of this user are served. */
  listen(path: string): void {
    this.#listener = Bun.listen<Client | undefined>({
      unix: path,
      socket: {
        open: (socket) => this.#opened(socket as Socket),
        data: (socket, bytes) => socket.data?.receive(bytes),
        close: (socket) => this.#closed(socket.data),
        error: (socket) => this.#closed(socket.data),
      },
    })
  }

  /** Whether it listens. */
  get listening(): boolean {
    return this.#listener !== undefined
  }

  /** Sends a signal of the service to everyone who subscribed to it; returns to how many. */
  emit(signal: { path: string; interface: string; member: string; body: readonly DbusValue[] }): number {
    const message = { ...signal, type: 'signal', serial: 1, sender: this.service.name } as const
    return [...this.#clients].filter((client) => client.subscribes(message) && client.send(message)).length
  }

  close(): void {
    this.#listener?.stop(true)
    this.#listener = undefined
  }

  #opened(socket: Socket): void {
    const refuse = (reason: string) => {
      this.log.warn('D-Bus client refused', { reason })
      socket.terminate()
    }
    if (this.#clients.size >= maxClients) {
      refuse('too many clients')
      return
    }
    try {
      if (this.kernel.peerCredentials(socket.fd).uid !== process.getuid?.()) {
        refuse('it belongs to another user')
        return
      }
    } catch (error) {
      refuse(messageOf(error)) // it is gone
      return
    }
    const client = new Client(this, socket, `:1.${++this.#last}`, new DbusAuthentication(this.#guid))
    socket.data = client
    this.#clients.add(client)
  }

  #closed(client: Client | undefined): void {
    if (!client) return
    client.closed()
    this.#clients.delete(client)
  }
}

/** One connection. */
class Client {
  readonly #rules: string[] = []
  readonly #parsed = new Map<string, MatchRule>()
  /** Bytes of an incomplete line or message. */
  readonly #waiting = Buffer.alloc(maxDbusMessage)
  #length = 0
  #authenticated = false
  #serial = 0
  readonly #timer: ReturnType<typeof setTimeout>

  constructor(
    readonly bus: Bus,
    readonly socket: Socket,
    readonly name: string,
    readonly authentication: DbusAuthentication,
  ) {
    this.#timer = setTimeout(() => socket.terminate(), authenticationTime)
    this.#timer.unref()
  }

  receive(bytes: Uint8Array): void {
    try {
      for (let rest = bytes; rest.length > 0; ) {
        const part = rest.subarray(0, this.#waiting.length - this.#length)
        this.#waiting.set(part, this.#length)
        this.#length += part.length
        rest = rest.subarray(part.length)
        this.#consume()
      }
    } catch (error) {
      this.bus.log.warn('D-Bus client disconnected', { client: this.name, error })
      this.socket.terminate()
    }
  }

  subscribes(signal: DbusHeader): boolean {
    return [...this.#parsed.values()].some((rule) => matchesRule(rule, signal))
  }

  /** Sends a message; a client that does not read is disconnected. Returns whether it was sent. */
  send(message: DbusMessage, descriptors: readonly number[] = []): boolean {
    const bytes = writeDbusMessage({
      ...message,
      serial: ++this.#serial,
      ...(descriptors.length > 0 && { descriptors: descriptors.length }),
    })
    try {
      if (descriptors.length > 0) this.bus.kernel.sendDescriptors(this.socket.fd, bytes, descriptors)
      else this.#write(bytes)
      return true
    } catch (error) {
      this.bus.log.warn('D-Bus client disconnected', { client: this.name, error })
      this.socket.terminate()
      return false
    }
  }

  closed(): void {
    clearTimeout(this.#timer)
  }

  /** Everything is written at once or not at all, so that descriptors never overtake bytes in a buffer. */
  #write(bytes: string | Uint8Array): void {
    const length = Buffer.byteLength(bytes)
    const written = this.socket.write(bytes)
    if (written !== length) throw new Error(`the client does not read: ${written} of ${length} bytes were accepted`)
  }

  #consume(): void {
    let used = 0
    if (!this.#authenticated) {
      const step = this.authentication.receive(this.#waiting.subarray(0, this.#length))
      if (step.replies !== '') this.#write(step.replies)
      used = step.used
      this.#authenticated = step.done
      if (step.done) clearTimeout(this.#timer)
    }
    while (this.#authenticated) {
      const read = readDbusMessage(this.#waiting.subarray(used, this.#length))
      if (!read) break
      used += read.length
      if (read.message.type === 'call') this.#answer(read.message)
    }
    this.#waiting.copyWithin(0, used, this.#length)
    this.#length -= used
  }

  #answer(call: DbusMessage): void {
    const head = { serial: 0, replySerial: call.serial, destination: this.name }
    try {
      const own = call.destination === busName || call.destination === undefined || call.interface === 'org.freedesktop.DBus.Peer'
      const { body = [], descriptors, sent = () => {} } = own ? this.#answerAsBus(call) : this.#answerAsService(call)
      const sender = own ? busName : this.bus.service.name
      sent(call.noReply ? false : this.send({ ...head, type: 'return', sender, body }, descriptors))
    } catch (error) {
      if (!(error instanceof BusError)) throw error
      const body = [{ type: 's', value: error.message }] as const
      if (!call.noReply) this.send({ ...head, type: 'error', sender: busName, errorName: error.errorName, body })
    }
  }

  #answerAsService(call: DbusMessage): BusReply {
    if (call.destination !== this.bus.service.name)
      throw new BusError('org.freedesktop.DBus.Error.ServiceUnknown', `nobody has the name "${call.destination}" on this bus`)
    return this.bus.service.call(call)
  }

  /** The few methods of the bus itself. */
  #answerAsBus(call: DbusMessage): BusReply {
    switch (call.member) {
      case 'Hello':
        return { body: [{ type: 's', value: this.name }] }
      case 'Ping':
        return {}
      case 'AddMatch':
        this.#subscribe(stringOf(call, 0))
        return {}
      case 'RemoveMatch':
        this.#unsubscribe(stringOf(call, 0))
        return {}
      case 'GetNameOwner': {
        const name = stringOf(call, 0)
        if (name !== busName && name !== this.bus.service.name)
          throw new BusError('org.freedesktop.DBus.Error.NameHasNoOwner', `nobody has the name "${name}" on this bus`)
        return { body: [{ type: 's', value: name }] }
      }
      default:
        throw unknownMethod(call)
    }
  }

  #subscribe(rule: string): void {
    if (this.#rules.length >= maxRules) throw new BusError('org.freedesktop.DBus.Error.LimitsExceeded', `at most ${maxRules} match rules`)
    this.#rules.push(rule)
    this.#parsed.set(rule, parseMatchRule(rule))
  }

  #unsubscribe(rule: string): void {
    const at = this.#rules.indexOf(rule)
    if (at < 0) throw new BusError('org.freedesktop.DBus.Error.MatchRuleNotFound', 'there is no such match rule')
    this.#rules.splice(at, 1)
    if (!this.#rules.includes(rule)) this.#parsed.delete(rule)
  }
}

/** A string argument of a call. Throws BusError. */
export function stringOf({ body }: DbusMessage, index: number): string {
  const value = body?.[index]
  if (value?.type !== 's') throw new BusError('org.freedesktop.DBus.Error.InvalidArgs', `argument ${index + 1} is not a string`)
  return value.value
}

/** The error for a method that is not served. */
export const unknownMethod = (call: DbusHeader): BusError =>
  new BusError('org.freedesktop.DBus.Error.UnknownMethod', `method "${call.interface ?? ''}.${call.member ?? ''}" is not served here`)
