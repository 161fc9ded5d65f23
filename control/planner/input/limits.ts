/** How many channels there may be. */

/** NCCL_MIN_NCHANNELS and so on count channels after doubling; a search finds half as many. */
export const MAX_CHANNELS = 64;

/** How many channels there are in the end. */
export interface ChannelLimits {
  readonly min: number;
  readonly max: number;
}

export const ANY_CHANNELS: ChannelLimits = { min: 1, max: MAX_CHANNELS };
