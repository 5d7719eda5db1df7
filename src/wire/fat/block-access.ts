/** A disk, partition or image file. */
export interface BlockAccess {
  /** Size in bytes. */
  readonly size: number
  read(offset: number, length: number): Promise<Uint8Array>
  write(offset: number, bytes: Uint8Array): Promise<void>
  /** Flushes everything written before. */
  flush(): Promise<void>
}

/** Contents of a file to write, in pieces of any length. */
export type Content = Uint8Array | AsyncIterable<Uint8Array>
