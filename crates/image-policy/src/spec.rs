//! The rules that the spec of an ImagePolicy names.

use api::image::{ImagePolicySpec, TagOrder};

use crate::{Direction, Error, Filter, Order, Policy};

impl TryFrom<&ImagePolicySpec> for Policy {
    type Error = Error;

    fn try_from(spec: &ImagePolicySpec) -> Result<Self, Error> {
        let choice = &spec.policy;
        let order = if let Some(semver) = &choice.semver {
            Order::semver(&semver.range)?
        } else if let Some(alphabetical) = &choice.alphabetical {
            Order::Alphabetical(direction(alphabetical.order))
        } else if let Some(numerical) = &choice.numerical {
            Order::Numerical(direction(numerical.order))
        } else {
            return Err(Error::NoOrder);
        };
        let filter = spec.filter_tags.as_ref().and_then(|filter| {
            let pattern = filter.pattern.as_deref()?;
            Some(Filter::new(
                pattern,
                filter.extract.as_deref().unwrap_or_default(),
            ))
        });
        Ok(Self::new(order, filter.transpose()?))
    }
}

fn direction(order: Option<TagOrder>) -> Direction {
    match order.unwrap_or_default() {
        TagOrder::Asc => Direction::Ascending,
        TagOrder::Desc => Direction::Descending,
    }
}
