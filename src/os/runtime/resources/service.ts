import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Whether a service runs and is healthy. */
export const Service = defineResource({
  type: 'Services.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'Service',
  aliases: ['svc'],
  columns: { Running: '{.running}', Healthy: '{.healthy}', 'Health Unknown': '{.unknown}' },
  spec: v.object({ running: v.boolean(), healthy: v.boolean(), unknown: v.boolean() }),
})

/** The process of a service. */
export const ServicePID = defineResource({
  type: 'ServicePIDs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'ServicePID',
  columns: { PID: '{.pid}' },
  spec: v.object({ pid: integer, mountNamespace: v.string() }),
})
