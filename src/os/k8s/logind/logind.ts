/**
 * The part of logind that the kubelet needs to end pods before the machine stops: it takes a lock that delays a shutdown, is notified of
 * the shutdown by a signal, ends its pods with their own grace periods and by priority, and gives the lock back. The lock is a pipe:
 * a kubelet that dies gives it back too.
 */
import { dirname } from 'node:path'
import type { Clock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { LockPipe } from '../../../linux/fs/fifo.ts'
import type { DbusMessage } from '../../../wire/dbus/message.ts'
import type { DbusValue } from '../../../wire/dbus/values.ts'
import type { Kernel } from '../../kernel.ts'
import { Bus, BusError, type BusReply, type BusService, stringOf, unknownMethod } from './bus.ts'

/** Where the system bus is; the default path of clients is this below `/var`. */
export const systemBusSocket = '/run/dbus/system_bus_socket'

const managerPath = '/org/freedesktop/login1'
const managerInterface = 'org.freedesktop.login1.Manager'

/** Milliseconds that a lock may delay a shutdown, at least. The kubelet refuses to start its part when this is less than it needs. */
const minDelay = 20 * 60_000

/** How the holder of the lock ended: it gave the lock back, there was none, or the time was over. */
export type ShutdownOutcome = 'released' | 'no lock' | 'timeout'

/** The calls of the kernel. */
interface LogindKernel {
  readonly socket: Pick<Kernel['socket'], 'peerCredentials' | 'sendDescriptors'>
  readonly fifo: Pick<Kernel['fifo'], 'makeLockPipe'>
  readonly files: Pick<Kernel['files'], 'mkdirAll' | 'exists' | 'removeFile' | 'chmod'>
}

/** Delays a shutdown until the kubelet has ended its pods. */
export class Logind implements BusService {
  readonly name = 'org.freedesktop.login1'
  readonly #bus: Bus
  #lock: LockPipe | undefined
  #preparing = false
  #delay = minDelay

  constructor(
    readonly kernel: LogindKernel,
    readonly log: Logger,
    readonly clock: Pick<Clock, 'sleep'>,
  ) {
    this.#bus = new Bus(this, kernel.socket, log)
  }

  /** Listens for the kubelet, which may need this many milliseconds to end its pods. Calling it again only sets these. */
  listen(needed: number, path: string = systemBusSocket): void {
    this.#delay = Math.max(minDelay, needed)
    if (this.#bus.listening) return
    const { files } = this.kernel
    files.mkdirAll(dirname(path), { mode: 0o755 })
    if (files.exists(path)) files.removeFile(path)
    this.#bus.listen(path)
    files.chmod(path, 0o600)
  }

  /** Announces a shutdown, and waits until the lock is given back, for at most `limit` milliseconds. Rejects when the signal is aborted. */
  async prepareForShutdown(limit: number, signal: AbortSignal): Promise<ShutdownOutcome> {
    const lock = this.#lock
    this.#preparing = true
    if (!lock) return 'no lock'
    if (this.#announce(true) === 0) return 'no lock'
    const waiting = new AbortController()
    const over = this.clock.sleep(limit, AbortSignal.any([signal, waiting.signal])).then(() => 'timeout' as const)
    const outcome = await Promise.race([lock.released.then(() => 'released' as const), over])
    waiting.abort()
    signal.throwIfAborted()
    return outcome
  }

  /** The shutdown is over or was called off: locks may be taken again. */
  resume(): void {
    if (!this.#preparing) return
    this.#preparing = false
    this.#announce(false)
  }

  /** Stops serving, and gives up the lock. */
  close(): void {
    this.#bus.close()
    this.#lock?.close()
    this.#lock = undefined
  }

  call(message: DbusMessage): BusReply {
    if (message.path !== managerPath)
      throw new BusError('org.freedesktop.DBus.Error.UnknownObject', `there is no object "${message.path ?? ''}" here`)
    if (message.member === 'Get' && message.interface === 'org.freedesktop.DBus.Properties') return this.#property(message)
    if (message.member === 'Inhibit' && message.interface === managerInterface) return this.#inhibit(message)
    throw unknownMethod(message)
  }

  #property(message: DbusMessage): BusReply {
    const name = stringOf(message, 1)
    const properties: Record<string, DbusValue> = {
      InhibitDelayMaxUSec: { type: 't', value: BigInt(this.#delay) * 1000n },
      PreparingForShutdown: { type: 'b', value: this.#preparing },
    }
    const value = stringOf(message, 0) === managerInterface ? properties[name] : undefined
    if (!value) throw new BusError('org.freedesktop.DBus.Error.UnknownProperty', `there is no property "${name}" here`)
    return { body: [{ type: 'v', value }] }
  }

  /** Takes the lock. There is one: a kubelet that takes another has forgotten the first. */
  #inhibit(message: DbusMessage): BusReply {
    const [what, who, , mode] = [0, 1, 2, 3].map((index) => stringOf(message, index))
    if (what !== 'shutdown' || mode !== 'delay')
      throw new BusError('org.freedesktop.DBus.Error.NotSupported', `only a delay of a shutdown is served, not "${mode}" of "${what}"`)
    if (this.#preparing) throw new BusError('org.freedesktop.login1.OperationInProgress', 'the machine is shutting down')
    const lock = this.kernel.fifo.makeLockPipe()
    const previous = this.#lock
    this.#lock = lock
    previous?.close()
    lock.released.finally(() => {
      if (this.#lock === lock) this.#lock = undefined
    })
    this.log.info('shutdown lock taken', { by: who })
    return {
      body: [{ type: 'h', value: 0 }],
      descriptors: [lock.writer],
      sent: (delivered) => (delivered ? lock.handedOver() : lock.close()),
    }
  }

  #announce(value: boolean): number {
    return this.#bus.emit({
      path: managerPath,
      interface: managerInterface,
      member: 'PrepareForShutdown',
      body: [{ type: 'b', value }],
    })
  }
}
