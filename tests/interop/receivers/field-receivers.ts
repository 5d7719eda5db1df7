/** The field's own receivers of logs and events (main.go), and what they decoded. */

/** A message of the event sink. */
interface ReceivedEvent {
  readonly event: string
  readonly id: string
  readonly actor: string
  readonly payload: Record<string, unknown>
}

/** Both receivers, in one process. */
export class FieldReceivers {
  readonly ports = { logs: 5143, events: 5144 }
  readonly logs: Record<string, unknown>[] = []
  readonly events: ReceivedEvent[] = []
  #process: Bun.Subprocess<'ignore', 'pipe', 'inherit'> | undefined

  constructor(readonly host: string) {}

  /** Starts the program, which was built before. */
  start(program: string): void {
    const { logs, events } = this.ports
    this.#process = Bun.spawn([program, `${this.host}:${logs}`, `${this.host}:${events}`], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    this.#read(this.#process.stdout).catch(() => {}) // it was stopped
  }

  stop(): void {
    this.#process?.kill()
  }

  async #read(output: AsyncIterable<Uint8Array>): Promise<void> {
    let rest = ''
    for await (const bytes of output) {
      const lines = `${rest}${Buffer.from(bytes)}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const { log, ...event } = JSON.parse(line) as { log?: Record<string, unknown> } & ReceivedEvent
        if (log) this.logs.push(log)
        else this.events.push(event)
      }
    }
  }
}
