import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** The process of a service. */
export const ServicePID = defineResource({
  type: 'ServicePIDs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'ServicePID',
  columns: { PID: '{.pid}' },
  spec: v.object({ pid: integer, mountNamespace: v.string() }),
})
