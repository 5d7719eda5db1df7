/** Probes whether an address answers, by which a machine checks its own connectivity. */

/** An endpoint: `host:port`, and the authorities (PEM) that must have signed its certificate where the handshake counts. */
export interface Probe {
  readonly host: string
  readonly port: number
  readonly authorities?: readonly string[]
}

/**
 * Connects, within so many milliseconds. A refusal is an answer too: its packets made the round trip. With authorities, only a TLS
 * server with a certificate of one of them counts.
 */
export function answers({ host, port, authorities }: Probe, timeout: number, signal?: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), timeout)
  const abort = () => resolve(false)
  signal?.addEventListener('abort', abort, { once: true })
  const refused = (error: unknown) => resolve(!authorities && (error as { code?: string } | undefined)?.code === 'ECONNREFUSED')
  const opened: { end(): void }[] = []
  const socket: Bun.SocketHandler<undefined> = {
    open(socket) {
      opened.push(socket)
      if (!authorities) resolve(true)
    },
    // The name does not matter: the holder of a certificate of these authorities is a member.
    handshake: (_, __, error) => resolve(error === null || (error as { code?: string }).code === 'ERR_TLS_CERT_ALTNAME_INVALID'),
    data() {},
    error: (_, error) => refused(error),
    connectError: (_, error) => refused(error),
    close: () => resolve(false),
  }
  const tls = authorities && ({ ca: authorities.join('\n'), rejectUnauthorized: false } as Bun.TLSOptions)
  Bun.connect({ hostname: host, port, socket, ...(tls && { tls }) }).catch(refused)
  return promise.finally(() => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
    for (const socket of opened) socket.end()
  })
}
