import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The latest start of etcd: its settings, its stage, and how often it failed with them. */
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
    /** Its stage: the image is made available, it looks for its data or for members to join, or its process was started. */
    stage: v.picklist(['image', 'data', 'running']),
    /** Number of failed pulls and of processes that exited by themselves, since the first start with these settings. */
    failures: v.number(),
    /** The error of the last failure. */
    error: v.string(),
  }),
})
