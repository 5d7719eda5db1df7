/** Whether somebody answers at an address: what a machine finds out by itself about the way to others. */

/** An endpoint: `host:port`, and the authorities (PEM) of which its certificate has to be where the handshake counts. */
export interface Probe {
  readonly host: string
  readonly port: number
  readonly authorities?: readonly string[]
}

/**
 * Connects, within so many milliseconds. A refusal is an answer too: its packets went there and came back. With authorities
 * only a TLS server counts whose certificate is of one of them.
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
    // The name does not matter: whoever has a certificate of these authorities is one of ours.
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
