import { existsSync } from 'node:fs'
import { Journal } from '../../node-supervisor/journal.ts'
import { clusterPaths, readCluster } from '../../node-supervisor/layout.ts'
import type { Io } from '../io.ts'
import { installUnit, removeUnit, unitName, unitPath } from './host/unit.ts'
import { holdCluster } from './run-destroy.ts'

/** Makes a cluster start with its host, or no longer; the journal lists the unit, so that it goes with the cluster. */
export async function setRestart(io: Io, directory: string, withHost: boolean): Promise<void> {
  const unlock = holdCluster(directory)
  try {
    const record = readCluster(directory)
    if (!record) throw new Error(`there is no cluster in "${directory}"`)
    const path = unitPath(record)
    if (withHost) {
      new Journal(clusterPaths(directory).journal).write({ kind: 'unit', name: unitName(record) })
      await installUnit(record, directory)
      io.stderr.write(`cluster "${record.name}" starts with this host: ${path}\n`)
    } else if (existsSync(path)) {
      await removeUnit(unitName(record))
      io.stderr.write(`cluster "${record.name}" no longer starts with this host: removed ${path}\n`)
    }
  } finally {
    if (existsSync(directory)) unlock()
  }
}
