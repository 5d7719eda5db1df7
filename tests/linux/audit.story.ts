/** The kernel's audit system: records of programs reach the service, which gives the registration back. */
import { expect, test } from 'bun:test'
import { systemClock } from '../../src/cosi/clock.ts'
import * as audit from '../../src/linux/net/audit.ts'
import { NetlinkSocket, netlinkProtocol } from '../../src/linux/net/netlink-socket.ts'
import type { Kernel } from '../../src/os/kernel.ts'
import { auditdService } from '../../src/os/runtime/services/auditd.ts'
import { messageOf } from '../../src/wire/error-message.ts'

/** Why the audit system of this kernel cannot be used here: it belongs to the first namespaces, and has one user. */
function obstacle(): string | undefined {
  try {
    const { pid } = audit.auditStatus()
    if (pid !== 0) return `process ${pid} has registered for records`
    audit.readAudit(() => {}).close()
    audit.setAudit({ backlogLimit: 8192 })
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

const reason = process.getuid?.() === 0 ? obstacle() : 'needs root'
if (reason) console.log(`skipped: the audit system: ${reason}`)

/** AUDIT_USER_LOGIN: a record that a program may write. */
const userLogin = 1112

test.skipIf(reason !== undefined)('records of programs are lines of the log, until the service ends', async () => {
  const before = audit.auditStatus()
  const lines: string[] = []
  const came = Promise.withResolvers<void>()
  const stop = new AbortController()
  const { runner } = auditdService({ kernel: { audit } as unknown as Kernel })
  if (!runner) throw new Error('the service has nothing to run')
  const output = {
    line(text: string) {
      lines.push(text)
      if (text.includes('of-the-story')) came.resolve()
    },
  }
  const running = await runner({ output, signal: stop.signal, clock: systemClock } as never)
  using socket = new NetlinkSocket(netlinkProtocol.audit)
  socket.request('AUDIT_USER_LOGIN', 'record', userLogin, Buffer.from('op=of-the-story res=success\0'))
  await came.promise
  expect(audit.auditStatus()).toEqual({ ...audit.auditStatus(), enabled: true, pid: process.pid })
  expect(lines.find((line) => line.includes('of-the-story'))).toMatch(
    /^type=USER_LOGIN msg=audit\(\d+\.\d{3}:\d+\): pid=\d+ .*op=of-the-story/,
  )
  running.kill('SIGTERM')
  expect(await running.exit).toEqual({ ok: true, message: 'Task "auditd" ended' })
  expect([audit.auditStatus().pid, audit.auditStatus().enabled]).toEqual([0, before.enabled])
})
