/** The dashboard on the machine's own screen: it has the terminal for itself and speaks to init without any network. */
import { openSync } from 'node:fs'
import { ReadStream, WriteStream } from 'node:tty'
import { Cluster } from '../talosctl/cluster.ts'
import { showDashboard } from '../talosctl/dashboard/dashboard.ts'
import { takeTerminal } from '../talosctl/dashboard/terminal.ts'
import { processIo } from '../talosctl/io.ts'

const machineSocket = '/system/run/machined/machine.sock'

/** Milliseconds between looks: the screen may be a serial line. */
const interval = 3000

/** Shows this machine on the terminal that is named, until it is stopped. */
export async function main([terminalPath = '/dev/tty2']: string[]): Promise<number> {
  const io = processIo()
  const cluster = new Cluster(io, { endpoints: [], nodes: [], socket: machineSocket, roles: ['os:reader'], source: machineSocket })
  const fd = openSync(terminalPath, 'r+')
  const output = new WriteStream(fd)
  const terminal = takeTerminal(new ReadStream(fd), output)
  try {
    await showDashboard({ cluster, terminal, interval, signal: io.signal, now: io.now })
  } finally {
    terminal.close()
    await cluster.close()
  }
  // A terminal that was opened for reading keeps the process even when it is closed again (Bun 1.4.5).
  process.exit(0)
}
