import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The latest start of etcd: with which settings, how far it got, and how often it failed with them. */
export const EtcdStart = defineResource({
  type: 'EtcdStarts.etcd.ichor.dev',
  namespace: 'etcd',
  displayType: 'EtcdStart',
  initials: false,
  columns: { Settings: '{.settings}', Stage: '{.stage}', Failures: '{.failures}', Error: '{.error}' },
  spec: v.object({
    /** Digest of the settings it was started with, as `digestOf` computes it. */
    settings: v.string(),
    image: v.string(),
    /** What it is at: its image is made available, it looks for its data or for members to join, or its process was started. */
    stage: v.picklist(['image', 'data', 'running']),
    /** Pulls that failed and processes that ended by themselves, since it was first started with these settings. */
    failures: v.number(),
    /** Why it failed last, in its own words. */
    error: v.string(),
  }),
})
