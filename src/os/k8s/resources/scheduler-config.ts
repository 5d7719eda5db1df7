import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { componentSettings } from './component-settings.ts'

/** How kube-scheduler should run. */
export const SchedulerConfig = defineResource({
  type: 'SchedulerConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'SchedulerConfig',
  spec: v.object({
    enabled: v.boolean(),
    image: v.string(),
    ...componentSettings,
    config: v.optional(v.record(v.string(), v.unknown()), {}),
  }),
})
