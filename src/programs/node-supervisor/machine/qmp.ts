/** The few commands and events of QEMU's machine protocol that a supervisor needs (QMP, one JSON object per line). */

import net from 'node:net'
import { pause } from '../../../timing/pause.ts'

const mostLine = 1024 * 1024

/** Why a machine stopped, as reported by its emulator. */
export type Shutdown = { guest: boolean; reason: string }

/** A connection to a machine's control socket. */
export class Control {
  #socket: net.Socket | undefined
  #rest = ''
  /** Why the machine ended, once it did. */
  ended: Shutdown | undefined

  /** Connects once the socket is there; gives up silently when the signal fires first. */
  async connect(path: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const socket = await dial(path)
      if (socket) {
        this.#socket = socket
        socket.setEncoding('utf8')
        socket.on('data', (text: string) => this.#take(text))
        socket.on('error', () => socket.destroy())
        this.#send('qmp_capabilities')
        return
      }
      await pause(50)
    }
  }

  /** Presses the machine's power button. */
  pressPower(): void {
    this.#send('system_powerdown')
  }

  close(): void {
    this.#socket?.destroy()
  }

  #send(execute: string): void {
    if (this.#socket?.writable) this.#socket.write(`${JSON.stringify({ execute })}\n`)
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > mostLine) this.close()
    for (const line of lines) this.ended = shutdownOf(line) ?? this.ended
  }
}

/** Parses a SHUTDOWN event; undefined for any other line. */
export function shutdownOf(line: string): Shutdown | undefined {
  if (!line.includes('"SHUTDOWN"')) return undefined
  try {
    const { event, data } = JSON.parse(line)
    if (event !== 'SHUTDOWN' || typeof data?.reason !== 'string') return undefined
    return { guest: data.guest === true, reason: data.reason }
  } catch {
    return undefined
  }
}

function dial(path: string): Promise<net.Socket | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect({ path })
    socket.once('connect', () => {
      socket.removeAllListeners('error')
      resolve(socket)
    })
    socket.once('error', () => {
      socket.destroy()
      resolve(undefined)
    })
  })
}
