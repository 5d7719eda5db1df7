import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'
import { createLogger, formatEntry, type Logger } from '../../cosi/log.ts'
import { failedWith } from '../../wire/errno.ts'

/** How the supervisor's own lines in a console begin. */
export const supervisorMark = '[supervisor]'

/** A node's console on disk: one current file and one older, so it never takes more than twice the limit. */
export class ConsoleLog {
  #fd: number
  #size: number

  /** The supervisor's own lines, as a log. */
  readonly log: Logger = createLogger((entry) => this.note(formatEntry(entry)))

  constructor(
    readonly file: string,
    readonly limit = 5 * 1024 * 1024,
  ) {
    this.#fd = openSync(file, 'a', 0o600)
    this.#size = fstatSync(this.#fd).size
  }

  /** Appends bytes as they came; what a full disk does not take is lost, for a node must not end of it. */
  write(bytes: Uint8Array): void {
    try {
      this.#append(bytes)
    } catch (error) {
      if (!failedWith(error, 'ENOSPC')) throw error
    }
  }

  #append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#size >= this.limit) this.#rotate()
      const part = bytes.subarray(at, at + Math.max(1, this.limit - this.#size))
      const written = writeSync(this.#fd, part)
      this.#size += written
      at += written
    }
  }

  /** Appends a line of the supervisor, marked by its prefix. */
  note(line: string): void {
    this.write(Buffer.from(`${supervisorMark} ${new Date().toISOString()} ${line}\n`))
  }

  close(): void {
    closeSync(this.#fd)
  }

  #rotate(): void {
    closeSync(this.#fd)
    renameSync(this.file, `${this.file}.1`)
    this.#fd = openSync(this.file, 'a', 0o600)
    this.#size = 0
  }
}
