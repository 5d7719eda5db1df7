/** Debian's rsyslog as a receiver of JSON lines over TCP, UDP and TLS; each has a file of its own. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newCA, newCertificate } from '../../../src/pki/certificate.ts'

/** The daemon; undefined where it is not installed. */
export const rsyslogd = Bun.which('rsyslogd', { PATH: `${process.env.PATH}:/usr/sbin` }) ?? undefined

/** A protocol of the receiver. */
export type Protocol = 'tcp' | 'udp' | 'tls'

/** Ports of the receiver. */
export const ports: Readonly<Record<Protocol, number>> = { tcp: 5140, udp: 5141, tls: 5142 }

/** A daemon that can be killed and started again. */
export class Rsyslog {
  /** The authority of its certificate, PEM. */
  readonly authority: string
  readonly #folder: string
  #process: Bun.Subprocess | undefined

  /** Listens at the address, whose certificate it has. */
  constructor(folder: string, address: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true })
    const ca = newCA({ subject: { organizations: ['receivers'] }, kind: 'ecdsa' })
    const options = { ca, subject: { commonName: 'receiver' }, usage: ['serverAuth' as const], lifetime: 24 * 3600_000 }
    const { crt, key } = newCertificate({ ...options, sans: { ips: [address] } })
    this.authority = ca.crt
    for (const [name, text] of Object.entries({ 'ca.crt': ca.crt, 'server.crt': crt, 'server.key': key }))
      writeFileSync(join(folder, name), text)
    writeFileSync(join(folder, 'rsyslog.conf'), this.#settings())
  }

  #settings(): string {
    const into = (protocol: Protocol) =>
      `ruleset(name="${protocol}") { action(type="omfile" file="${this.#file(protocol)}" template="raw") }`
    return [
      `global(workDirectory="${this.#folder}" maxMessageSize="128k"`,
      `  defaultNetstreamDriverCAFile="${this.#folder}/ca.crt"`,
      `  defaultNetstreamDriverCertFile="${this.#folder}/server.crt" defaultNetstreamDriverKeyFile="${this.#folder}/server.key")`,
      'template(name="raw" type="string" string="%rawmsg%\\n")',
      'module(load="imudp")',
      'module(load="imtcp")',
      'module(load="imptcp")',
      ...(['tcp', 'udp', 'tls'] as const).map(into),
      `input(type="imptcp" port="${ports.tcp}" ruleset="tcp")`,
      `input(type="imudp" port="${ports.udp}" ruleset="udp" rcvbufSize="8m")`,
      `input(type="imtcp" port="${ports.tls}" ruleset="tls" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon")`,
      '',
    ].join('\n')
  }

  #file(protocol: Protocol): string {
    return join(this.#folder, `${protocol}.log`)
  }

  start(): void {
    const argv = [rsyslogd ?? '', '-n', '-f', join(this.#folder, 'rsyslog.conf'), '-i', join(this.#folder, 'pid')]
    this.#process = Bun.spawn(argv, { stdin: 'ignore', stdout: 'ignore', stderr: Bun.file(join(this.#folder, 'errors')) })
  }

  /** Ends it without a chance to read what is in its sockets. */
  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL')
    await this.#process?.exited
  }

  /** The messages that it received. */
  messages(protocol: Protocol): Record<string, unknown>[] {
    const file = this.#file(protocol)
    if (!existsSync(file)) return []
    // The last line may be half written.
    return readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  }
}
