/** The kernel's audit system: it sends records to the one process that has registered for them (audit(8), linux/audit.h). */
import { closeSync } from 'node:fs'
import { type AuditChange, type AuditStatus, auditMessage, readAuditStatus, writeAuditChange } from '../../wire/netlink/audit.ts'
import { flag, writeMessage } from '../../wire/netlink/message.ts'
import { check, libc } from '../libc.ts'
import { onReadable } from '../readable.ts'
import { NetlinkSocket, netlinkProtocol, openNetlink } from './netlink-socket.ts'
import { MSG_DONTWAIT } from './socket-constants.ts'

const c = libc({
  send: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
  recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
})

/** More than the longest record. */
const longestDatagram = 32 << 10
const maxBurst = 256

/** The state of the audit system. */
export function auditStatus(): AuditStatus {
  using socket = new NetlinkSocket(netlinkProtocol.audit)
  // A thread of the kernel answers, after any acknowledgement.
  return readAuditStatus(socket.query('AUDIT_GET', 'status', auditMessage.get, new Uint8Array(0)).body)
}

/** Changes the audit system. */
export function setAudit(change: AuditChange): void {
  using socket = new NetlinkSocket(netlinkProtocol.audit)
  socket.request('AUDIT_SET', 'status', auditMessage.set, writeAuditChange(change))
}

/** The registration for records. */
export interface AuditReader {
  /** Gives the registration back. */
  close(): void
}

/** Registers this process, in place of one that has ended, and receives each message as a datagram. */
export function readAudit(receive: (datagram: Uint8Array) => void): AuditReader {
  const fd = openNetlink(netlinkProtocol.audit, { nonBlocking: true })
  const buffer = Buffer.alloc(longestDatagram)
  let open = true
  const register = (pid: number) => {
    const bytes = writeMessage({ type: auditMessage.set, flags: flag.request, sequence: 1, body: writeAuditChange({ pid }) })
    check('AUDIT_SET', c().send(fd, bytes, bytes.length, 0), 'pid')
  }
  const drain = () => {
    for (let count = 0; open; count++) {
      if (count === maxBurst) {
        setImmediate(drain) // others need the thread too
        return
      }
      const length = Number(c().recv(fd, buffer, buffer.length, MSG_DONTWAIT))
      // Nothing more for now, or records were lost, which the kernel counts.
      if (length < 0) return
      receive(Uint8Array.prototype.slice.call(buffer, 0, length))
    }
  }
  let deaf = () => {}
  try {
    deaf = onReadable(fd, drain)
    register(process.pid)
    drain()
  } catch (error) {
    deaf()
    closeSync(fd)
    throw error
  }
  return {
    close() {
      if (!open) return
      open = false
      deaf()
      try {
        register(0)
      } finally {
        closeSync(fd)
      }
    },
  }
}
