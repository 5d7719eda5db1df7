import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { pause } from '../../timing/pause.ts'
import { failedWith } from '../../wire/errno.ts'
import { type KernelRecord, parseKernelRecord } from '../../wire/proc/kmsg.ts'
import { translated } from '../system-error.ts'

const path = '/dev/kmsg'

/** Writes lines to the kernel log; priority as in syslog (facility 3 is daemon, severity 6 informational). */
export function writeKernelLog(text: string, priority = 3 * 8 + 6): void {
  translated('write', path, () => {
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    try {
      for (const line of text.split('\n')) if (line) writeSync(fd, `<${priority}>${line.slice(0, 900)}\n`) // LOG_LINE_MAX less its prefix
    } finally {
      closeSync(fd)
    }
  })
}

/** PRINTK_MESSAGE_MAX and more; one shared buffer, since a record is decoded before the next read. */
const buffer = Buffer.alloc(8192)

function next(fd: number): string | undefined | 'lost' {
  try {
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, null))
  } catch (error) {
    if (failedWith(error, 'EAGAIN')) return undefined
    if (failedWith(error, 'EPIPE')) return 'lost' // records were overwritten before they were read; the next read goes on
    throw error
  }
}

/** Records of the kernel log: existing ones and, with `follow`, new ones until the signal is aborted. */
export async function* readKernelLog({
  follow = false,
  tail = false,
  signal = undefined as AbortSignal | undefined,
} = {}): AsyncGenerator<KernelRecord> {
  const fd = translated('open', path, () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK))
  try {
    while (!signal?.aborted) {
      const text = translated('read', path, () => next(fd))
      if (text === undefined) {
        if (!follow) return
        tail = false
        await pause(250, signal)
      } else if (text !== 'lost' && text !== '' && !tail) {
        const record = parseKernelRecord(text)
        if (record) yield record
      } else if (text === '') return
    }
  } finally {
    closeSync(fd)
  }
}
